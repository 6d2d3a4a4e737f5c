# frozen_string_literal: true

require_relative "../message_pack"

module Offlock
  module MessagePack
    # The method +to_msgpack+ of core classes.
    module CoreExt
      # Packs the object: with a packer into it, with an IO into that, without an argument into a String.
      def to_msgpack(packer_or_io = nil)
        return MessagePack.pack(self, packer_or_io) unless packer_or_io.is_a?(Packer)

        to_msgpack_with_packer(packer_or_io)
      end

      private

      def to_msgpack_with_packer(packer) = packer.write(self)
    end

    # Each class with the packer's method that writes it, even if the class is registered as an extension.
    {
      NilClass => :write_nil, TrueClass => :write_true, FalseClass => :write_false,
      Float => :write_float, String => :write_string, Array => :write_array, Hash => :write_hash,
      Symbol => :write_symbol, Integer => :write_int, ExtensionValue => :write_extension
    }.each do |klass, method|
      klass.include(CoreExt)
      klass.class_eval do
        if %i[write_nil write_true write_false].include?(method)
          define_method(:to_msgpack_with_packer) { |packer| packer.public_send(method) }
        else
          define_method(:to_msgpack_with_packer) { |packer| packer.public_send(method, self) }
        end
        private :to_msgpack_with_packer
      end
    end
  end
end

require_relative "symbol"
