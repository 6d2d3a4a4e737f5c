# frozen_string_literal: true

module Offlock
  module Tiktoken
    # Turns text into tokens and back. Get one from {Tiktoken.get_encoding} or {Tiktoken.encoding_for_model}.
    #
    # = Text
    #
    # Strings in UTF-8 and US-ASCII are taken as they are, ASCII in any encoding too. Other encodings are transcoded.
    # A String that is invalid, that has characters without an equal in UTF-8, or that is binary and not ASCII raises
    # +EncodingError+; the message says which byte, and where.
    #
    # = Special tokens
    #
    # Strings like +<|endoftext|>+ are ordinary text unless they are allowed: +allowed_special+ is an Array of the
    # Strings to be recognised, or +:all+.
    #
    # = The lock
    #
    # With <tt>release: :auto</tt> a call gives up the interpreter lock when its input is large enough to pay for it.
    # +:always+ and +:never+ overrule that. A call can be interrupted (Thread#kill, Timeout, Ctrl-C) at any time.
    #
    # = Packed tokens
    #
    # With <tt>packed: true</tt> tokens come in one binary String of native unsigned 32-bit numbers instead of an Array:
    # cheaper to make and to keep, accepted by {#decode}, and turned into an Array by <tt>unpack("L*")</tt>.
    class Encoding
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

      # The same as {for_name}: an encoding exists once.
      # @param (see for_name)
      # @return (see for_name)
      # @raise (see for_name)
      def self.for_name_cached(encoding)
        for_name(encoding)
      end

      # Turns text into tokens. Special tokens are ordinary text unless they are allowed.
      # @param text [String]
      # @param allowed_special [Array<String>, :all] the special tokens to be recognised
      # @param packed [Boolean] whether to return one binary String instead of an Array
      # @param release [:auto, :always, :never] whether to give up the interpreter lock
      # @return [Array<Integer>, String]
      # @raise [EncodingError] if the text cannot be read as UTF-8
      def encode(text, allowed_special: nil, packed: false, release: :auto)
        native_encode(text, allowed_special, packed, release)
      end

      # Turns text into tokens. Special tokens are ordinary text.
      # @param (see #encode)
      # @return (see #encode)
      # @raise (see #encode)
      def encode_ordinary(text, packed: false, release: :auto)
        native_encode(text, nil, packed, release)
      end

      # Turns text into tokens. All special tokens are recognised.
      # @param (see #encode)
      # @return (see #encode)
      # @raise (see #encode)
      def encode_with_special_tokens(text, packed: false, release: :auto)
        native_encode(text, :all, packed, release)
      end

      # Turns many texts into tokens, giving up the lock once for all of them.
      # @param texts [Array<String>]
      # @param threads [Integer, nil] how many threads may work on it at most; nil for one a processor. Under the
      #   lock it is always one.
      # @param (see #encode)
      # @return [Array<Array<Integer>>, Array<String>] the tokens of each text
      # @raise (see #encode)
      def encode_batch(texts, threads: nil, allowed_special: nil, packed: false, release: :auto)
        native_encode_batch(texts, allowed_special, threads, packed, release)
      end

      # Counts the tokens that {#encode} would give, without making them.
      # @param (see #encode)
      # @return [Integer]
      # @raise (see #encode)
      def count(text, allowed_special: nil, release: :auto)
        native_count(text, allowed_special, release)
      end

      # Counts the tokens of many texts, giving up the lock once for all of them.
      # @param (see #encode_batch)
      # @return [Array<Integer>]
      # @raise (see #encode)
      def count_batch(texts, threads: nil, allowed_special: nil, release: :auto)
        native_count_batch(texts, allowed_special, threads, release)
      end

      # The longest beginning of a text that is whole tokens, at most +max_tokens+ of them, and whole characters.
      # @param max_tokens [Integer]
      # @param (see #encode)
      # @return [String]
      # @raise (see #encode)
      def truncate(text, max_tokens, allowed_special: nil, release: :auto)
        native_truncate(text, max_tokens, allowed_special, release)
      end

      # Turns tokens into text.
      #
      # A character may be spread over several tokens, so that tokens cut off somewhere need not be valid UTF-8.
      # @param tokens [Array<Integer>, String] tokens, or packed tokens
      # @param errors [:strict, :replace] whether to raise or to put U+FFFD in the place of what is no valid UTF-8
      # @param release [:auto, :always, :never] whether to give up the interpreter lock
      # @return [String] in UTF-8
      # @raise [UnicodeError] if there is an unknown token, or the text is no valid UTF-8
      def decode(tokens, errors: :strict, release: :auto)
        case errors
        when :strict then native_decode(tokens, release)
        when :replace then decode_replacing(tokens, release)
        else raise ArgumentError, "errors must be :strict or :replace, got #{errors.inspect}"
        end
      end

      # Turns tokens into bytes.
      # @param tokens [Array<Integer>, String] tokens, or packed tokens
      # @param release [:auto, :always, :never] whether to give up the interpreter lock
      # @return [String] in binary encoding
      # @raise [UnicodeError] if there is an unknown token
      def decode_bytes(tokens, release: :auto)
        native_decode_bytes(tokens, release)
      end

      # The token, ordinary or special, whose bytes these are.
      # @param bytes [String]
      # @return [Integer]
      # @raise [KeyError] if there is none
      def encode_single_token(bytes)
        native_encode_single_token(bytes) or
          raise KeyError.new("no token for #{bytes.inspect}", receiver: self, key: bytes)
      end

      # The bytes of one token.
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

      # There is one of each, and it never changes.
      # @return [Encoding] itself
      def dup = self
      def clone(**) = self

      # @return [String]
      def inspect
        "#<#{self.class} #{name}>"
      end

      private

      # Nearly always the text is valid, which is found out without the lock; `scrub` would look at it with the lock held.
      def decode_replacing(tokens, release)
        native_decode(tokens, release)
      rescue UnicodeError
        native_decode_bytes(tokens, release).force_encoding(::Encoding::UTF_8).scrub("\u{FFFD}")
      end
    end
  end
end
