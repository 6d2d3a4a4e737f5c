# frozen_string_literal: true

require_relative "registered_types"

module Offlock
  module MessagePack
    # Packs objects one after the other, into a String or an IO.
    class Packer
      include RegisteredTypes

      undef_method :dup
      undef_method :clone

      def to_a = [to_str]

      # Returns the registered types, sorted by number.
      def registered_types
        entries = registered_types_internal.map { |klass, (type, packer)| { type: type, class: klass, packer: packer } }
        entries.sort_by { |entry| entry[:type] }
      end

      def type_registered?(klass_or_type)
        registered_in?(registered_types, klass_or_type) { |klass, known| klass <= known }
      end

      private :registered_types_internal
    end
  end
end
