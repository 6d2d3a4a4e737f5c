# frozen_string_literal: true

require_relative "symbols"

# The methods that <tt>register_type(type, Symbol)</tt> uses.
class Symbol
  alias to_msgpack_ext name

  def self.from_msgpack_ext(data) = Offlock::MessagePack::Symbols.from_payload(data)
end
