# frozen_string_literal: true

require_relative "registered_types"

module Offlock
  module MessagePack
    # Unpacks objects one after the other, from Strings ({feed}) or from an IO.
    class Unpacker
      include RegisteredTypes

      undef_method :dup
      undef_method :clone

      # Yields every complete object in the buffer; with an IO, every object up to the end of the IO.
      def each(&block)
        return to_enum unless block
        return each_message(&block) unless buffer.io

        begin
          each_message(&block)
        rescue EOFError
          nil
        end
      end

      # Appends +data+ to the buffer, then yields every complete object.
      def feed_each(data, &block)
        return to_enum(__method__, data) unless block

        feed(data)
        each(&block)
      end

      # Returns the registered types, sorted by number.
      def registered_types
        entries = registered_types_internal.map { |type, (klass, unpacker)| { type: type, class: klass, unpacker: unpacker } }
        entries.sort_by { |entry| entry[:type] }
      end

      def type_registered?(klass_or_type)
        registered_in?(registered_types, klass_or_type) { |klass, known| klass == known }
      end

      private :each_message, :registered_types_internal
    end
  end
end
