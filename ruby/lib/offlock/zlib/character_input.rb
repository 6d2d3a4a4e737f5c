# frozen_string_literal: true

module Offlock
  module Zlib
    # The methods of PlainInput that read characters.
    module CharacterInput
      # No encoding needs more bytes for a character.
      LONGEST = 8

      def getc
        @plain.char || (text(@plain.cut(character_size)) if fill(1))
      end

      def readchar = getc || end_of_file

      def each_char
        io
        while (char = @plain.char || getc)
          yield char
        end
      end

      private

      # The next `wanted` bytes, or a few more up to the end of a character, without reading further. Nil for invalid
      # text.
      def whole_characters(wanted)
        (wanted...wanted + LONGEST).each do |size|
          fill(size)
          head = @plain.peek(size)
          return head if head.bytesize < size || head.valid_encoding?
        end
        nil
      end

      # The number of bytes in the next character.
      def character_size
        head = whole_characters(1) || @plain.peek(LONGEST)
        head[0].bytesize
      end
    end
    private_constant :CharacterInput
  end
end
