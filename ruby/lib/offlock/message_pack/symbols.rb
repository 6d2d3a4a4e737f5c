# frozen_string_literal: true

module Offlock
  module MessagePack
    # How Symbols are packed and unpacked that are registered as an extension type.
    # @private
    module Symbols
      # The Symbol of a payload: in UTF-8, or else of these bytes.
      def self.from_payload(data)
        data.force_encoding(Encoding::UTF_8).to_sym
      rescue EncodingError
        data.force_encoding(Encoding::BINARY).to_sym
      end

      # What the names of methods stand for as long as Symbol has no such ones.
      STANDINS = {
        to_msgpack_ext: :name,
        from_msgpack_ext: Ractor.make_shareable(->(data) { Symbols.from_payload(data) })
      }.freeze

      def self.packer(given) = given.is_a?(Symbol) && Symbol.method_defined?(given) ? given : STANDINS.fetch(given, given)

      def self.unpacker(given) = given.is_a?(Symbol) && Symbol.respond_to?(given) ? given : STANDINS.fetch(given, given)
    end
  end
end
