# frozen_string_literal: true

module Offlock
  module Tokenizers
    # How many tokens an encoding has: where it is cut, and what fills it up. The names and defaults are those of Hugging
    # Face's +tokenizers+.
    module Layout
      DIRECTIONS = %w[left right].freeze
      STRATEGIES = %w[longest_first only_first only_second].freeze
      private_constant :DIRECTIONS, :STRATEGIES

      module_function

      # @return [Hash{String => Object}] the settings of a truncation
      # @raise [ArgumentError] if one of them is not valid
      def truncation(max_length, stride: 0, strategy: "longest_first", direction: "right")
        { "max_length" => natural(max_length, "max_length"), "stride" => natural(stride, "stride"),
          "strategy" => choice(strategy, "strategy", STRATEGIES), "direction" => choice(direction, "direction", DIRECTIONS) }.freeze
      end

      # @return [Hash{String => Object}] the settings of a padding
      # @raise [ArgumentError] if one of them is not valid
      def padding(direction: "right", length: nil, pad_to_multiple_of: nil, pad_id: 0, pad_type_id: 0, pad_token: "[PAD]")
        { "length" => length && natural(length, "length"), "pad_id" => natural(pad_id, "pad_id"),
          "pad_type_id" => natural(pad_type_id, "pad_type_id"), "pad_token" => String(pad_token),
          "pad_to_multiple_of" => pad_to_multiple_of && natural(pad_to_multiple_of, "pad_to_multiple_of"),
          "direction" => choice(direction, "direction", DIRECTIONS) }.freeze
      end

      # Returns the parts of a text's tokens, as ranges: the first is what is kept, the others follow it, each with +stride+
      # tokens of the one before.
      # @param size [Integer] the number of tokens
      # @param max [Integer] the maximum number of tokens of a part
      def parts(size, max, truncation)
        return [0...size] if size <= max
        return [0...0, 0...size] if max.zero?

        right = truncation["direction"] == "right"
        step = max - truncation["stride"]
        raise Error, "a stride of #{truncation["stride"]} tokens needs more than #{max} tokens" unless step.positive?

        count = (size - max).ceildiv(step)
        (0..count).map do |number|
          near = number * step
          far = [near + max, size].min
          right ? near...far : (size - far)...(size - near)
        end
      end

      # Returns the size to which encodings are filled up.
      # @param longest [Integer] the size of the longest of them
      def padded_size(longest, padding)
        size = padding["length"] || longest
        multiple = padding["pad_to_multiple_of"]
        multiple.nil? || multiple.zero? ? size : size.ceildiv(multiple) * multiple
      end

      def natural(value, name)
        raise ArgumentError, "#{name} must be 0 or more, got #{value}" if Integer(value).negative?

        Integer(value)
      end

      def choice(value, name, choices)
        return value.to_s if choices.include?(value.to_s)

        raise ArgumentError, "#{name} must be one of #{choices.join(", ")}, got #{value.inspect}"
      end
      private_class_method :natural, :choice
    end
    private_constant :Layout
  end
end
