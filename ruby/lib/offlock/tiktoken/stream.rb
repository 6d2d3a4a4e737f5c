# frozen_string_literal: true

module Offlock
  module Tiktoken
    # Encodes a text that arrives in pieces, each token as soon as no continuation of the text can change it.
    #
    # {Encoding#stream} and {Tokenizer#stream} make streams. The tokens of all calls, joined, are those of the whole text.
    # What is kept back is the last piece of the encoding's pattern (roughly, a word), what the pattern looks at behind
    # it, and the beginning of a special token.
    #
    # A piece may begin and end within a character, so binary Strings count as UTF-8. Strings in other encodings are
    # transcoded to UTF-8.
    #
    # A call that raises leaves the stream as it was. While one thread uses a stream, it raises +ThreadError+ for others.
    #
    # @example
    #   stream = Offlock::Tiktoken.get_encoding("o200k_base").stream
    #   stream.feed("off th")   #=> [2864]
    #   stream.total            #=> 2
    #   stream.feed("e lock")   #=> [290]
    #   stream.finish           #=> [8109]
    class Stream
      # @return [Integer] the number of tokens that are final
      # @!attribute [r] final_count

      # @return [Integer] the number of bytes of text that are kept back
      # @!attribute [r] pending

      # Adds a piece of the text.
      # @param piece [String]
      # @param packed [Boolean] whether to return one binary String instead of an Array
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [Array<Integer>, String] the tokens that became final
      # @raise [EncodingError] if the text is not UTF-8
      # @raise [RuntimeError] if more text than the limit would be kept back, and after {#finish}
      def feed(piece, packed: false, release: :auto)
        native_feed(utf8(piece), packed, release)
      end

      # Adds a piece of the text, and counts its tokens only.
      # @param (see #feed)
      # @return [Integer] the number of tokens that became final
      # @raise (see #feed)
      def count(piece, release: :auto)
        native_count(utf8(piece), release)
      end

      # Adds a piece of the text without returning tokens, so that a stream can be written to.
      # @param piece [String]
      # @return [Stream] itself
      # @raise (see #feed)
      def <<(piece)
        count(piece)
        self
      end

      # Ends the text.
      # @param packed [Boolean] whether to return one binary String instead of an Array
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [Array<Integer>, String] the rest of the tokens
      # @raise [EncodingError] if the last character is not complete
      def finish(packed: false, release: :auto)
        native_finish(packed, release)
      end

      # Counts the tokens of the text so far, as if it ended here: those that are final, and those of what is kept back. A
      # character that is not complete does not count. It takes time in proportion to what is kept back.
      # @param release [:auto, :always, :never] whether to release the interpreter lock
      # @return [Integer]
      def total(release: :auto)
        native_total(release)
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{final_count} tokens, #{pending} bytes kept back>"
      end

      # Encodings whose bytes are taken for UTF-8. A String that is cut within a character is not valid.
      UTF8 = [::Encoding::UTF_8, ::Encoding::US_ASCII, ::Encoding::BINARY].freeze
      private_constant :UTF8

      private

      def utf8(piece)
        piece = String.new(piece) unless piece.instance_of?(String)
        UTF8.include?(piece.encoding) ? piece : piece.encode(::Encoding::UTF_8)
      end
    end
  end
end
