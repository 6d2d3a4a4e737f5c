# frozen_string_literal: true

require_relative "tokenizer"
require_relative "tokenizers/added_token"
require_relative "tokenizers/encoding"
require_relative "tokenizers/layout"
require_relative "tokenizers/tokenizer"

module Offlock
  # The calls of the gem +tokenizers+ for models that {Offlock::Tokenizer} reads, without the interpreter lock.
  #
  #   Tokenizers = Offlock::Tokenizers
  #   tokenizer = Tokenizers.from_file("models/Qwen3-8B/tokenizer.json")
  #   tokenizer.encode("hello world").ids
  #
  # It has what applies to a tokenizer that is read from a file and used: encoding, decoding, padding, truncation and the
  # vocabulary. It does not train, change or save tokenizers, does not encode pairs of texts or words that were separated
  # before, and does not know the words of a text (+word_ids+ and the like).
  module Tokenizers
    # Raised if a file cannot be read, or asks for what is not here.
    class Error < StandardError; end

    class << self
      # (see Tokenizer.from_file)
      def from_file(path) = Tokenizer.from_file(path)

      # (see Tokenizer.from_pretrained)
      def from_pretrained(identifier, **options) = Tokenizer.from_pretrained(identifier, **options)
    end
  end
end
