# frozen_string_literal: true

require_relative "registered_types"

module Offlock
  module MessagePack
    # Unpacks objects one after the other, from Strings that are fed to it or from an IO.
    class Unpacker
      include RegisteredTypes

      undef_method :dup
      undef_method :clone

      # Yields every object that is there; with an IO, every object up to its end.
      def each(&block)
        return to_enum unless block
        return each_message(&block) unless buffer.io

        begin
          each_message(&block)
        rescue EOFError
          nil
        end
      end

      # Feeds +data+, and yields every object that is there then.
      def feed_each(data, &block)
        return to_enum(__method__, data) unless block

        feed(data)
        each(&block)
      end

      # The registered types, sorted by number.
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
