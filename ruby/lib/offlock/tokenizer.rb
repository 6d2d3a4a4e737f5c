# frozen_string_literal: true

require "offlock/offlock"
require_relative "tiktoken/chunk"

module Offlock
  # The tokenizer of a model with byte-level byte pair encoding, without the interpreter lock.
  #
  # It reads a +tokenizer.json+ (Llama 3, Qwen, DeepSeek, GPT-OSS, Phi-4 and others), Mistral's +tekken.json+ or a
  # +.tiktoken+ file from the disk; nothing is downloaded. The tokens are those of Hugging Face's +tokenizers+. A tokenizer
  # is frozen and may be used by many threads and Ractors at once.
  #
  # Text, the lock and packed tokens are as for {Tiktoken::Encoding}. Added tokens in a text become one token each, as in
  # +tokenizers+; with <tt>split_special_tokens: true</tt> the special ones among them are ordinary text.
  #
  # @example
  #   tokenizer = Offlock::Tokenizer.new("models/Qwen3-8B")
  #   tokenizer.encode("hello world")
  #   tokenizer.count("hello world", add_special_tokens: false)
  class Tokenizer
    include Tiktoken::Chunking

    # The files of a model's folder that can be read without a pattern, in the order of preference.
    FILES = %w[tokenizer.json tekken.json].freeze
    private_constant :FILES

    class << self
      private :native_read

      # Reads a model's files.
      # @param path [String, Pathname] a file, or the folder of a model
      # @param pattern [String, nil] the regular expression that matches one piece of text, for a +.tiktoken+ file
      # @param special_tokens [Hash{String => Integer}] the special tokens of a +.tiktoken+ file
      # @return [Tokenizer]
      # @raise [ArgumentError] if the file is not valid, or if the model is not byte-level byte pair encoding; the message
      #   names what is missing
      # @raise [SystemCallError] if there is no such file
      def new(path, pattern: nil, special_tokens: {})
        path = File.path(path) # raises TypeError for what is no path
        from_bytes(File.binread(file(path, pattern)), pattern: pattern, special_tokens: special_tokens)
      end

      # Reads the content of a file.
      # @param content [String]
      # @param (see #new)
      # @return (see #new)
      # @raise [ArgumentError] as for {new}
      def from_bytes(content, pattern: nil, special_tokens: {})
        if pattern.nil? && !special_tokens.empty?
          raise ArgumentError, "special_tokens are for .tiktoken files, which need a pattern too"
        end

        native_read(content, pattern, special_tokens)
      end

      private

      def file(path, pattern)
        return path unless File.directory?(path)

        names = pattern ? Dir.children(path).grep(/\.tiktoken\z/) : FILES & Dir.children(path)
        raise Errno::ENOENT, "a tokenizer in #{path}" if names.empty?
        raise ArgumentError, "#{path} has #{names.size} .tiktoken files, not one" if pattern && names.size > 1

        File.join(path, names.first)
      end
    end

    # @return [Integer] the number of tokens, with those that were added
    # @!attribute [r] vocab_size

    # @return [Hash{String => Integer}] the added tokens
    # @!method added_tokens

    # Returns how the model's vocabulary writes a token (a blank is +Ġ+).
    # @param id [Integer]
    # @return [String, nil] nil if there is no such token
    # @!method id_to_token(id)

    # Returns the token that the model's vocabulary writes like this.
    # @param token [String]
    # @return [Integer, nil] nil if there is none
    def token_to_id(token)
      native_token_to_id(token)
    end

    # Converts text to tokens.
    # @param text [String]
    # @param add_special_tokens [Boolean] whether the tokens of the model's template go before and after the text
    # @param split_special_tokens [Boolean] whether special tokens in the text are ordinary text
    # @param packed [Boolean] whether to return one binary String instead of an Array
    # @param release [:auto, :always, :never] whether to release the interpreter lock
    # @return [Array<Integer>, String]
    # @raise [EncodingError] if the text cannot be read as UTF-8
    def encode(text, add_special_tokens: true, split_special_tokens: false, packed: false, release: :auto)
      native_encode(text, add_special_tokens, split_special_tokens, packed, release)
    end

    # Converts text to tokens with their places: the start and the end of the characters of which a token has bytes. Tokens
    # of the template have +[0, 0]+.
    # @param unit [:characters, :bytes] what is counted
    # @param (see #encode)
    # @return [Array(Array<Integer>, Array<Array(Integer, Integer)>)] the tokens, and their places
    # @raise (see #encode)
    def encode_with_offsets(text, unit: :characters, add_special_tokens: true, split_special_tokens: false, release: :auto)
      unless %i[characters bytes].include?(unit)
        raise ArgumentError, "unit must be :characters or :bytes, got #{unit.inspect}"
      end

      native_encode_with_offsets(text, unit == :bytes, add_special_tokens, split_special_tokens, release)
    end

    # Converts many texts to tokens, with one release of the lock for all of them.
    # @param texts [Array<String>]
    # @param threads [Integer, nil] the maximum number of threads; nil for one per processor
    # @param (see #encode)
    # @return [Array<Array<Integer>>, Array<String>] the tokens of each text
    # @raise (see #encode)
    def encode_batch(
      texts, threads: nil, add_special_tokens: true, split_special_tokens: false, packed: false, release: :auto
    )
      native_encode_batch(texts, add_special_tokens, split_special_tokens, threads, packed, release)
    end

    # Counts the tokens that {#encode} would return, without making them.
    # @param (see #encode)
    # @return [Integer]
    # @raise (see #encode)
    def count(text, add_special_tokens: true, split_special_tokens: false, release: :auto)
      native_count(text, add_special_tokens, split_special_tokens, release)
    end

    # Counts the tokens of many texts, with one release of the lock for all of them.
    # @param (see #encode_batch)
    # @return [Array<Integer>]
    # @raise (see #encode)
    def count_batch(texts, threads: nil, add_special_tokens: true, split_special_tokens: false, release: :auto)
      native_count_batch(texts, add_special_tokens, split_special_tokens, threads, release)
    end

    # Returns the longest prefix of a text whose whole tokens, with those of the template, are at most +max_tokens+.
    # @param max_tokens [Integer]
    # @param (see #encode)
    # @return [String]
    # @raise (see #encode)
    def truncate(text, max_tokens, add_special_tokens: true, split_special_tokens: false, release: :auto)
      native_truncate(text, max_tokens, add_special_tokens, split_special_tokens, release)
    end

    # Cuts a text into chunks of at most +max_tokens+ tokens, each as long as it can be.
    #
    # The number of tokens of a chunk is that of its text without the model's template. An added token, such as
    # "<|im_end|>", is not cut. A chunk of a text that the model normalizes to another one may be shorter than it could be.
    # @param (see Tiktoken::Encoding#chunks)
    # @return [Array<Tiktoken::Chunk>] the texts in UTF-8
    # @raise (see Tiktoken::Encoding#chunks)
    def chunks(text, max_tokens, overlap: 0, boundary: :token, release: :auto)
      text = String.new(text).freeze
      chunks_of(text, native_chunks(text, max_tokens, overlap, boundary, release))
    end

    # Makes a stream, which encodes a text as it arrives in pieces. Its tokens are those of {#encode}: the first ones of the
    # model's template come with the first piece, the last ones at the end.
    # @param add_special_tokens [Boolean] whether the tokens of the model's template go before and after the text
    # @param split_special_tokens [Boolean] whether special tokens in the text are ordinary text
    # @param limit [Integer, nil] the number of bytes of text that may be kept back; nil for any number
    # @return [Tiktoken::Stream]
    # @raise [ArgumentError] if the model cannot be streamed; the message says what is in the way
    def stream(add_special_tokens: true, split_special_tokens: false, limit: nil)
      native_stream(add_special_tokens, split_special_tokens, limit)
    end

    # Converts tokens to text. A number without a token stands for no text.
    # @param tokens [Array<Integer>, String] tokens, or packed tokens
    # @param skip_special_tokens [Boolean] whether to leave special tokens out
    # @param errors [:strict, :replace] whether to raise or to replace invalid UTF-8 by U+FFFD
    # @param release [:auto, :always, :never] whether to release the interpreter lock
    # @return [String] in UTF-8
    # @raise [Tiktoken::UnicodeError] with +:strict+, if the text is not valid UTF-8
    def decode(tokens, skip_special_tokens: true, errors: :replace, release: :auto)
      unless %i[strict replace].include?(errors)
        raise ArgumentError, "errors must be :strict or :replace, got #{errors.inspect}"
      end

      native_decode(tokens, skip_special_tokens, release)
    rescue Tiktoken::UnicodeError
      raise if errors == :strict

      decode_bytes(tokens, skip_special_tokens: skip_special_tokens, release: release)
        .force_encoding(Encoding::UTF_8).scrub("\u{FFFD}")
    end

    # Converts tokens to bytes.
    # @param (see #decode)
    # @return [String] in binary encoding
    def decode_bytes(tokens, skip_special_tokens: true, release: :auto)
      native_decode_bytes(tokens, skip_special_tokens, release)
    end

    # Returns the tokenizer itself, since it is frozen.
    # @return [Tokenizer] itself
    def dup = self
    def clone(**) = self

    # @return [String]
    def inspect
      "#<#{self.class} with #{vocab_size} tokens>"
    end
  end
end
