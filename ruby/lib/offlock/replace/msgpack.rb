# frozen_string_literal: true

require_relative "stand_in"
require_relative "../message_pack/bigint"

module Offlock
  # When the original was loaded before, what it was told holds for ours.
  module StandIn
    class << self
      private

      # The types that were registered with the original's default factory, for all that has no factory of its own.
      def take_over_types(original)
        packers, unpackers = original::DefaultFactory.__send__(:registered_types_internal)
        types = packers.map { |klass, (type, packer, flags)| [type, klass, packer, unpackers.delete(type)&.at(1), flags] }
        types += unpackers.map { |type, (klass, unpacker, flags)| [type, klass, nil, unpacker, flags] }
        types.each do |type, klass, packer, unpacker, flags|
          next if MessagePack::DefaultFactory.type_registered?(type)

          # Integers are packed by a type of their own only if they are too large for any other.
          options = { packer: packer, unpacker: unpacker, recursive: flags.anybits?(RECURSIVE),
                      oversized_integer_extension: klass.equal?(Integer) }
          MessagePack::DefaultFactory.register_type(type, klass, options)
        end
      end

      # Packers of the original that are at work hand themselves to +to_msgpack+.
      def know_packer(packer_class)
        MessagePack::CoreExt.prepend(
          Module.new do
            define_method(:to_msgpack) do |packer_or_io = nil|
              packer_or_io.is_a?(packer_class) ? to_msgpack_with_packer(packer_or_io) : super(packer_or_io)
            end
          end
        )
      end
    end

    # The original's flag of a type whose packer gets the packer.
    RECURSIVE = 1
    private_constant :RECURSIVE

    # Over the original's methods, if they are there.
    without_warnings { require_relative "../message_pack/core_ext" }
    if (original = put(:MessagePack, MessagePack))
      take_over_types(original)
      know_packer(original::Packer)
    end
    provide("msgpack")
  end
end
