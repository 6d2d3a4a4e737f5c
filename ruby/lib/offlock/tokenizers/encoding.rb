# frozen_string_literal: true

module Offlock
  module Tokenizers
    # The tokens of a text, with those of the model's template and the padding. Offsets are in characters, and are computed
    # when they are first asked for.
    class Encoding
      # The tokens of a whole text.
      # @private
      class Source
        attr_reader :ids

        # @param offsets [Boolean] whether there are offsets
        def initialize(tokenizer, text, ids, offsets: true)
          @tokenizer = tokenizer
          @text = text
          @ids = ids
          @offsets = offsets ? nil : Array.new(ids.size) { [0, 0] }
        end

        def offsets = @offsets ||= @tokenizer.encode_with_offsets(@text, add_special_tokens: false).last

        def name(id) = @tokenizer.id_to_token(id)
      end
      private_constant :Source

      # @return [Array<Encoding>] the parts that were cut off, each with the template's tokens
      attr_reader :overflowing

      # @param part [Range] the tokens of the text that belong to this encoding
      # @param template [Array(Array<Integer>, Array<Integer>)] the tokens before and after those of the text
      # @private
      def initialize(source, part, template, overflowing = [])
        @source = source
        @part = part
        @before, @after = template
        @overflowing = overflowing
        @filled = [0, 0]
      end

      # The tokens of all encodings of a text: what is kept, with what was cut off.
      # @private
      def self.of(tokenizer, text, ids, parts, template, offsets:)
        source = Source.new(tokenizer, text, ids, offsets: offsets)
        first, *others = parts.map { |part| new(source, part, template) }
        others.empty? ? first : new(source, parts.first, template, others)
      end

      # Fills this encoding up to so many tokens.
      # @private
      def fill(size, padding)
        missing = [size - self.size, 0].max
        @filled = padding["direction"] == "left" ? [missing, 0] : [0, missing]
        @padding = padding
        overflowing.each { |encoding| encoding.fill(size, padding) }
      end

      # @return [Integer] the number of tokens
      def size = @filled.sum + @before.size + @part.size + @after.size
      alias length size

      # @return [Integer] the number of texts
      def n_sequences = 1

      # @return [Array<Integer>] the tokens
      def ids = around(@source.ids[@part], @before, @after, @padding&.fetch("pad_id"))

      # @return [Array<String>] how the model's vocabulary writes them
      def tokens
        inner, before, after = [@source.ids[@part], @before, @after].map { |ids| ids.map { |id| @source.name(id) } }
        around(inner, before, after, @padding&.fetch("pad_token"))
      end

      # @return [Array<Array(Integer, Integer)>] the characters of the text that belong to each token; +[0, 0]+ for others
      def offsets = each_part(@source.offsets[@part], [0, 0], [0, 0])

      # @return [Array<Integer>] 0 for each token, and the padding's +pad_type_id+
      def type_ids = each_part([0] * @part.size, 0, @padding&.fetch("pad_type_id"))

      # @return [Array<Integer>] 1 for tokens of the template and of the padding, 0 for those of the text
      def special_tokens_mask = each_part([0] * @part.size, 1, 1)

      # @return [Array<Integer>] 0 for tokens of the padding, 1 for others
      def attention_mask = each_part([1] * @part.size, 1, 0)

      # @return [Array<Integer, nil>] 0 for tokens of the text, nil for others
      def sequence_ids = each_part([0] * @part.size, nil, nil)

      # @return [Integer, nil] 0 if the token belongs to the text, nil otherwise
      def token_to_sequence(token) = (0 if of_text.cover?(token))

      # @return [Array(Integer, Integer), nil] the characters of a token of the text, nil for others
      def token_to_chars(token) = (@source.offsets[@part][token - of_text.begin] if of_text.cover?(token))

      # @return [Integer, nil] the token to which a character belongs, nil if there is none
      def char_to_token(char, sequence = 0)
        return unless sequence.zero?

        index = @source.offsets[@part].index { |from, to| char >= from && char < to }
        index && (of_text.begin + index)
      end

      # @return [String]
      def inspect = "#<#{self.class} with #{size} tokens>"
      alias to_s inspect

      private

      # The places of the text's tokens among all.
      def of_text
        start = @filled.first + @before.size
        start...(start + @part.size)
      end

      def around(inner, before, after, filling)
        [*[filling] * @filled.first, *before, *inner, *after, *[filling] * @filled.last]
      end

      def each_part(inner, of_template, filling)
        around(inner, [of_template] * @before.size, [of_template] * @after.size, filling)
      end
    end
  end
end
