# frozen_string_literal: true

module Offlock
  module Tiktoken
    # A part of a text, from {Encoding#chunks} or {Tokenizer#chunks}.
    #
    # @!attribute [r] text
    #   @return [String] the part itself, in UTF-8
    # @!attribute [r] range
    #   @return [Range<Integer>] its characters: <tt>text[chunk.range] == chunk.text</tt>, if +text+ is the whole text
    # @!attribute [r] tokens
    #   @return [Integer] the number of its tokens
    Chunk = Data.define(:text, :range, :tokens)

    # What {Encoding} and {Tokenizer} share.
    # @private
    module Chunking
      private

      # The chunks of a text that have these numbers: for each its start and end in bytes, the same in characters, and its
      # tokens.
      def chunks_of(text, numbers)
        utf8 = text.encode(::Encoding::UTF_8)
        numbers.each_slice(5).with_index.map do |(first, last, from, to, tokens), index|
          Thread.pass if (index % 500).zero? # others wait 2 ms at most
          Chunk.new(utf8.byteslice(first, last - first), from...to, tokens)
        end
      end
    end
  end
end
