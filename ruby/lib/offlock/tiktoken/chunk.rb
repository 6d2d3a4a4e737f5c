# frozen_string_literal: true

module Offlock
  module Tiktoken
    # A part of a text, from {Encoding#chunks}.
    #
    # @!attribute [r] text
    #   @return [String] the part itself, in UTF-8
    # @!attribute [r] range
    #   @return [Range<Integer>] its characters: <tt>text[chunk.range] == chunk.text</tt>, if +text+ is the whole text
    # @!attribute [r] tokens
    #   @return [Integer] the number of its tokens
    Chunk = Data.define(:text, :range, :tokens)
  end
end
