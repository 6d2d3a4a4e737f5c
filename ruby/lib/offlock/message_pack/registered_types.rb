# frozen_string_literal: true

module Offlock
  module MessagePack
    # Searches the registered types for a class or a number.
    module RegisteredTypes
      private

      def registered_in?(entries, klass_or_type)
        case klass_or_type
        when Class then entries.any? { |entry| yield klass_or_type, entry[:class] }
        when Integer then entries.any? { |entry| entry[:type] == klass_or_type }
        else raise ArgumentError, "class or type id"
        end
      end
    end
    private_constant :RegisteredTypes
  end
end
