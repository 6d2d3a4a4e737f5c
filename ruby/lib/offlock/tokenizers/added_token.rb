# frozen_string_literal: true

module Offlock
  module Tokenizers
    # A token that was added to a model's vocabulary, and how it is found in a text.
    class AddedToken
      # @return [String]
      attr_reader :content
      # @return [Boolean] whether the token must be a word of its own
      attr_reader :single_word
      # @return [Boolean] whether it takes the blanks before it
      attr_reader :lstrip
      # @return [Boolean] whether it takes the blanks after it
      attr_reader :rstrip
      # @return [Boolean] whether it is looked for in the normalized text
      attr_reader :normalized
      # @return [Boolean] whether decoding may leave it out
      attr_reader :special

      def initialize(content, single_word: false, lstrip: false, rstrip: false, normalized: true, special: false)
        @content = content
        @single_word = single_word
        @lstrip = lstrip
        @rstrip = rstrip
        @normalized = normalized
        @special = special
        freeze
      end
    end
  end
end
