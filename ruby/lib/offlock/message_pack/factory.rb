# frozen_string_literal: true

require_relative "registered_types"
require_relative "symbols"

module Offlock
  module MessagePack
    # Makes packers and unpackers with the same extension types. Ractors can share a frozen factory if its callables are
    # names of methods or shareable Procs.
    class Factory
      include RegisteredTypes

      DEFAULT_OPTIONS = { packer: :to_msgpack_ext, unpacker: :from_msgpack_ext }.freeze
      private_constant :DEFAULT_OPTIONS

      # Registers an extension type, -128 to 127, for a class or module. The option +packer+ is a callable or the name of
      # a method of the object; +unpacker+ is a callable or the name of a method of the class.
      def register_type(type, klass, options = DEFAULT_OPTIONS)
        raise FrozenError, "can't modify frozen MessagePack::Factory" if frozen?
        raise TypeError, "wrong argument type #{type.class} (expected Integer)" unless type.is_a?(Integer)
        raise ArgumentError, "expected Module/Class but found #{klass.class}." unless klass.is_a?(Module)

        options ||= DEFAULT_OPTIONS.transform_values { nil }
        if options[:oversized_integer_extension] && klass != Integer
          raise ArgumentError, "oversized_integer_extension: true is only for Integer class"
        end

        callables = [callable(:packer, options[:packer]), callable(:unpacker, options[:unpacker])]
        callables = [Symbols.packer(callables[0]), Symbols.unpacker(callables[1])] if klass == Symbol
        @shown_types = nil
        register_type_internal(type, klass, callables, options)
      end

      # Returns the registered types, sorted by number: an Array of Hashes with +:type+, +:class+, and +:packer+,
      # +:unpacker+ or both (+selector+ is +:both+, +:packer+ or +:unpacker+).
      def registered_types(selector = :both)
        packers, unpackers = shown_types.map(&:dup)
        entries =
          case selector
          when :both then both_sides(packers, unpackers)
          when :packer then packing(packers)
          when :unpacker then unpacking(unpackers)
          else raise ArgumentError, "invalid selector #{selector}"
          end
        entries.sort_by { |entry| entry[:type] }
      end

      def type_registered?(klass_or_type, selector = :both)
        registered_in?(registered_types(selector), klass_or_type) { |klass, known| klass <= known }
      end

      # Freezes the factory, for other Ractors. The Procs that {registered_types} has returned cannot be shared.
      def freeze
        @shown_types = nil unless frozen?
        super
      end

      def load(source, options = nil)
        return unpacker(source, options).full_unpack unless source.is_a?(String)

        unpacker = unpacker(options)
        unpacker.feed(source)
        unpacker.full_unpack
      end
      alias unpack load

      def dump(object, *rest)
        packer = packer(*rest)
        packer.write(object)
        packer.full_pack
      end
      alias pack dump

      # Returns a pool that keeps up to +size+ packers and as many unpackers for reuse.
      def pool(size = 1, **options)
        Pool.new(frozen? ? self : dup.freeze, size, options.empty? ? nil : options)
      end

      private :register_type_internal, :registered_types_internal

      private

      # Returns the same Procs each time, until another type is registered.
      def shown_types = frozen? ? registered_types_internal : @shown_types ||= registered_types_internal

      def callable(name, value)
        case value
        when nil, Proc, Symbol then value
        when String then value.to_sym
        when Method then value.to_proc
        else
          unless value.respond_to?(:call)
            raise TypeError, "expected :#{name} argument to be a callable object, got: #{value.inspect}"
          end

          value.method(:call).to_proc
        end
      end

      def both_sides(packers, unpackers)
        packed = packers.map do |klass, (type, packer)|
          { type: type, class: klass, packer: packer, unpacker: unpackers.delete(type)&.at(1) }
        end
        packed + unpackers.map { |type, (klass, unpacker)| { type: type, class: klass, packer: nil, unpacker: unpacker } }
      end

      def packing(packers)
        packers.filter_map { |klass, (type, packer)| { type: type, class: klass, packer: packer } if packer }
      end

      def unpacking(unpackers)
        unpackers.filter_map { |type, (klass, unpacker)| { type: type, class: klass, unpacker: unpacker } if unpacker }
      end
    end
  end
end

require_relative "pool"
