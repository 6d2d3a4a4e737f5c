# frozen_string_literal: true

# What <tt>register_type(type, Symbol)</tt> calls.
class Symbol
  alias to_msgpack_ext name

  def self.from_msgpack_ext(data)
    data.force_encoding(Encoding::UTF_8).to_sym
  rescue EncodingError
    data.force_encoding(Encoding::BINARY).to_sym
  end
end
