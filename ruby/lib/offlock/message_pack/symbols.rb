# frozen_string_literal: true

module Offlock
  module MessagePack
    # Packs and unpacks Symbols that are registered as an extension type.
    # @private
    module Symbols
      # Returns the Symbol of a payload: in UTF-8, or in binary encoding if the payload is not UTF-8.
      def self.from_payload(data)
        data.force_encoding(Encoding::UTF_8).to_sym
      rescue EncodingError
        data.force_encoding(Encoding::BINARY).to_sym
      end

      # The callables that are used while Symbol has no methods with these names.
      STANDINS = {
        to_msgpack_ext: :name,
        from_msgpack_ext: Ractor.make_shareable(->(data) { Symbols.from_payload(data) })
      }.freeze

      def self.packer(given) = given.is_a?(Symbol) && Symbol.method_defined?(given) ? given : STANDINS.fetch(given, given)

      def self.unpacker(given) = given.is_a?(Symbol) && Symbol.respond_to?(given) ? given : STANDINS.fetch(given, given)
    end
  end
end
