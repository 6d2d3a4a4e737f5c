# frozen_string_literal: true

require_relative "stand_in"
require_relative "../message_pack/bigint"

module Offlock
  # If the original has been loaded before, its registered types are registered with ours, too.
  module StandIn
    class << self
      private

      # Registers the types of the original's default factory with ours, for callers that have no other factory.
      def copy_types(original)
        packers, unpackers = original::DefaultFactory.__send__(:registered_types_internal)
        types = packers.map { |klass, (type, packer, flags)| [type, klass, packer, unpackers.delete(type)&.at(1), flags] }
        types += unpackers.map { |type, (klass, unpacker, flags)| [type, klass, nil, unpacker, flags] }
        types.each do |type, klass, packer, unpacker, flags|
          next if MessagePack::DefaultFactory.type_registered?(type)

          # An extension type for Integers is only used for those that are too large for MessagePack's integers.
          options = { packer: packer, unpacker: unpacker, recursive: flags.anybits?(RECURSIVE),
                      oversized_integer_extension: klass.equal?(Integer) }
          MessagePack::DefaultFactory.register_type(type, klass, options)
        end
      end

      # Makes +to_msgpack+ accept packers of the original, which pass themselves as its argument.
      def accept_packers_of(packer_class)
        MessagePack::CoreExt.prepend(
          Module.new do
            define_method(:to_msgpack) do |packer_or_io = nil|
              packer_or_io.is_a?(packer_class) ? to_msgpack_with_packer(packer_or_io) : super(packer_or_io)
            end
          end
        )
      end
    end

    # The original's flag for a type whose callable gets the packer as an argument.
    RECURSIVE = 1
    private_constant :RECURSIVE

    # This redefines the original's methods if they exist, which would warn.
    without_warnings { require_relative "../message_pack/core_ext" }
    if (original = put(:MessagePack, MessagePack))
      copy_types(original)
      accept_packers_of(original::Packer)
    end
    provide("msgpack")
  end
end
