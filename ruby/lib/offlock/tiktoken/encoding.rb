# frozen_string_literal: true

module Offlock
  module Tiktoken
    # Converts text to tokens and back. {Tiktoken.get_encoding} and {Tiktoken.encoding_for_model} return encodings.
    #
    # = Text
    #
    # Strings in UTF-8 and US-ASCII, and Strings in any ASCII-compatible encoding that only have ASCII characters, are
    # encoded directly. Other Strings are transcoded to UTF-8 first. A String that is invalid in its encoding, that has
    # characters without a counterpart in UTF-8, or that is binary and not ASCII raises +EncodingError+; the message has
    # the byte and its position.
    #
    # = Special tokens
    #
    # Strings like +<|endoftext|>+ are ordinary text unless they are allowed: +allowed_special+ is an Array of the
    # Strings to recognise, or +:all+.
    #
    # = The lock
    #
    # With <tt>release: :auto</tt> a call releases the interpreter lock when its input is large enough. +:always+ and
    # +:never+ set it independently of the size. A call can be interrupted (Thread#kill, Timeout, Ctrl-C) at any time.
    #
    # = Packed tokens
    #
    # With <tt>packed: true</tt> tokens are returned in one binary String of native unsigned 32-bit numbers instead of an
    # Array. It takes less time and memory, {#decode} accepts it, and <tt>unpack("L*")</tt> converts it to an Array.
    class Encoding
      include Chunking

      # All encodings by name (a Symbol).
      ALL = Ractor.make_shareable(native_all.to_h { |encoding| [encoding.name, encoding] })

      private_class_method :new, :native_all

      # @return [Symbol] the name, like +:o200k_base+
      # @!attribute [r] name

      # @return [Integer] one more than the greatest token
      # @!attribute [r] n_vocab

      # @return [Integer] the greatest token
      # @!attribute [r] max_token_value

      # @return [Hash{String => Integer}] the special tokens
      # @!method special_tokens

      # @param encoding [Symbol, String] one of {Tiktoken.list_encoding_names}
      # @return [Encoding] the encoding
      # @raise [NoMethodError] if there is none of that name
      def self.for_name(encoding)
        ALL.fetch(encoding.to_sym) do |name|
          raise NoMethodError.new("no encoding #{name.inspect}; there are #{ALL.keys.join(", ")}", name)
        end
      end

      # The same as {for_name}, since there is one object of each encoding.
      # @param (see for_name)
      # @return (see for_name)
      # @raise (see for_name)
      def self.for_name_cached(encoding)
        for_name(encoding)
      end

      # Converts text to tokens. Special tokens are ordinary text unless they are allowed.
      # @param text [String]
      # @param allowed_special [Array<String>, :all] the special tokens to recognise
      # @param packed [Boolean] whether to return one binary String instead of an Array
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [Array<Integer>, String]
      # @raise [EncodingError] if the text cannot be read as UTF-8
      def encode(text, allowed_special: nil, packed: false, release: :auto)
        native_encode(text, allowed_special, packed, release)
      end

      # Converts text to tokens. Special tokens are ordinary text.
      # @param (see #encode)
      # @return (see #encode)
      # @raise (see #encode)
      def encode_ordinary(text, packed: false, release: :auto)
        native_encode(text, nil, packed, release)
      end

      # Converts text to tokens. All special tokens are recognised.
      # @param (see #encode)
      # @return (see #encode)
      # @raise (see #encode)
      def encode_with_special_tokens(text, packed: false, release: :auto)
        native_encode(text, :all, packed, release)
      end

      # Converts many texts to tokens, with one release of the lock for all of them.
      # @param texts [Array<String>]
      # @param threads [Integer, nil] the maximum number of threads; nil for one per processor. A call that does not
      #   release the lock uses one thread.
      # @param (see #encode)
      # @return [Array<Array<Integer>>, Array<String>] the tokens of each text
      # @raise (see #encode)
      def encode_batch(texts, threads: nil, allowed_special: nil, packed: false, release: :auto)
        native_encode_batch(texts, allowed_special, threads, packed, release)
      end

      # Counts the tokens that {#encode} would return, without making them.
      # @param (see #encode)
      # @return [Integer]
      # @raise (see #encode)
      def count(text, allowed_special: nil, release: :auto)
        native_count(text, allowed_special, release)
      end

      # Counts the tokens of many texts, with one release of the lock for all of them.
      # @param (see #encode_batch)
      # @return [Array<Integer>]
      # @raise (see #encode)
      def count_batch(texts, threads: nil, allowed_special: nil, release: :auto)
        native_count_batch(texts, allowed_special, threads, release)
      end

      # Returns the longest prefix of a text that consists of at most +max_tokens+ whole tokens and of whole characters.
      # @param max_tokens [Integer]
      # @param (see #encode)
      # @return [String]
      # @raise (see #encode)
      def truncate(text, max_tokens, allowed_special: nil, release: :auto)
        native_truncate(text, max_tokens, allowed_special, release)
      end

      # Cuts a text into chunks of at most +max_tokens+ tokens, each as long as it can be.
      #
      # The number of tokens of a chunk is that of its text encoded by itself, with special tokens treated as any other
      # text. Without an overlap the chunks joined are the text.
      # @param text [String]
      # @param max_tokens [Integer] at least 1
      # @param overlap [Integer] the largest number of tokens at the end of a chunk that the next one begins with, less
      #   than +max_tokens+
      # @param boundary [:token, :word, :sentence, :line, :paragraph] where chunks end and begin: at a token that ends a
      #   piece of the encoding's pattern; at a word, so that words such as "don't" and numbers stay whole; at a sentence
      #   (".", "!", "?", "…" and closing quotes and brackets with white space behind, "。", "！", "？", or a blank line);
      #   at a line; or at a paragraph, which a blank line ends. Where a chunk has none of these, it ends at the next
      #   finer one, and within a piece only if that alone is too long.
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [Array<Chunk>] the texts in UTF-8
      # @raise [ArgumentError] if a number or the boundary is out of range, or a single character has more tokens
      # @raise [EncodingError] if the text is invalid
      def chunks(text, max_tokens, overlap: 0, boundary: :token, release: :auto)
        text = String.new(text).freeze
        chunks_of(text, native_chunks(text, max_tokens, overlap, boundary, release))
      end

      # Makes a stream, which encodes a text as it arrives in pieces. Its tokens are those of {#encode}.
      # @param allowed_special [Array<String>, :all] the special tokens to recognise
      # @param limit [Integer, nil] the number of bytes of text that may be kept back; nil for any number
      # @return [Stream]
      def stream(allowed_special: nil, limit: nil)
        native_stream(allowed_special, limit)
      end

      # Converts tokens to text.
      #
      # A character may consist of several tokens, so a part of the tokens of a text may not be valid UTF-8.
      # @param tokens [Array<Integer>, String] tokens, or packed tokens
      # @param errors [:strict, :replace] whether to raise or to replace invalid UTF-8 by U+FFFD
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [String] in UTF-8
      # @raise [UnicodeError] if a token is unknown, or with +:strict+ if the text is not valid UTF-8
      def decode(tokens, errors: :strict, release: :auto)
        case errors
        when :strict then native_decode(tokens, release)
        when :replace then decode_replacing(tokens, release)
        else raise ArgumentError, "errors must be :strict or :replace, got #{errors.inspect}"
        end
      end

      # Converts tokens to bytes.
      # @param tokens [Array<Integer>, String] tokens, or packed tokens
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [String] in binary encoding
      # @raise [UnicodeError] if a token is unknown
      def decode_bytes(tokens, release: :auto)
        native_decode_bytes(tokens, release)
      end

      # Returns the token with these bytes, ordinary or special.
      # @param bytes [String]
      # @return [Integer]
      # @raise [KeyError] if no token has them
      def encode_single_token(bytes)
        native_encode_single_token(bytes) or
          raise KeyError.new("no token for #{bytes.inspect}", receiver: self, key: bytes)
      end

      # Returns the bytes of one token.
      # @param token [Integer]
      # @return [String] in binary encoding
      # @raise [KeyError] if there is no such token
      def decode_single_token_bytes(token)
        native_decode_single_token(token) or
          raise KeyError.new("no token #{token.inspect}", receiver: self, key: token)
      end

      # @return [Integer] the token that ends a text
      def eot_token
        encode_single_token("<|endoftext|>")
      end

      # Returns the encoding itself, since there is one object of each and it is frozen.
      # @return [Encoding] itself
      def dup = self
      def clone(**) = self

      # @return [String]
      def inspect
        "#<#{self.class} #{name}>"
      end

      private

      # Valid text is the usual case and is checked without the lock; `scrub` would check it with the lock.
      def decode_replacing(tokens, release)
        native_decode(tokens, release)
      rescue UnicodeError
        native_decode_bytes(tokens, release).force_encoding(::Encoding::UTF_8).scrub("\u{FFFD}")
      end
    end
  end
end
