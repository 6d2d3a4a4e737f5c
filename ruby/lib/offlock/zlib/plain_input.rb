# frozen_string_literal: true

module Offlock
  module Zlib
    # The methods of GzipInput, and of its like for other formats, that read plain bytes and characters. The class has a
    # ReadBuffer in `@plain`, `more`, which decompresses the next bytes into it and sets `@over` or `@failure` if there are
    # none, and what this module defines for a format without a footer.
    module PlainInput
      include LineInput
      include CharacterInput

      # The number of plain bytes that are decompressed at once.
      PLAIN = 1 << 18

      def external_encoding = io && (@internal || @external)

      # The number of plain bytes that the program has read.
      def pos = io && (@made - @plain.size)
      alias tell pos

      # Does not raise on a bad checksum: the next read does.
      def eof?
        io
        more until @plain.size.positive? || drained?
        raise @failure if @failure && !in_footer? && @plain.size.zero?

        @plain.size.zero?
      end
      alias eof eof?

      def read(length = nil, buffer = nil)
        io
        length = size_of(length) unless length.nil?
        return hand(length.zero? ? String.new : read_some(length), buffer) if length

        made = fill(nil) ? text(@plain.cut(@plain.size)) : String.new
        buffer ? hand(made, buffer) : made
      end

      def readpartial(most = nil, buffer = nil)
        io
        most = size_of(most)
        return hand(String.new, buffer) if most&.zero?
        raise EOFError, "end of file reached" unless fill(1)

        hand(@plain.cut(most || PLAIN), buffer)
      end

      def getbyte
        @plain.getbyte || (@plain.getbyte if fill(1))
      end

      def readbyte = getbyte || end_of_file

      def each_byte
        io
        while (byte = @plain.getbyte || getbyte)
          yield byte
        end
      end

      def ungetbyte(byte)
        io
        unread((byte & 0xff).chr.b) if byte
        nil
      end

      def ungetc(char)
        io
        return if char.nil?

        char = char.chr(@external) if char.is_a?(Integer)
        char = char.encode(@external) if @internal && char.encoding == @internal
        unread(char.b)
        nil
      end

      private

      # For a format without a footer, or a checksum to be kept.
      def in_footer? = false
      def note_crc = nil
      def tell_failure = raise(@failure)

      # Tries to buffer `size` bytes (nil: all bytes). Returns false if there are none.
      def fill(size)
        io
        more until @over || @failure || (size && @plain.size >= size)
        tell_failure if @failure && (@plain.size.zero? || cut_short?(size))

        @plain.size.positive?
      end

      def drained? = @over || @failure

      # Returns whether bad data prevents the read. A bad checksum does not: it is raised after everything was read.
      def cut_short?(size)
        !(size && @plain.size >= size) && !in_footer?
      end

      def read_some(length)
        fill(length) ? @plain.cut(length) : nil
      end

      # The bytes that are put back are in the checksum already.
      def unread(bytes)
        note_crc
        @plain.unread(bytes + @plain.rest, bytes.bytesize)
      end

      def hand(made, buffer)
        return made unless buffer

        buffer.replace(made || "")
        made && buffer
      end

      def text(bytes)
        bytes.force_encoding(@external)
        @internal ? converted(bytes, @internal) || bytes.force_encoding(Encoding::BINARY) : bytes
      end

      def end_of_file
        raise EOFError, "end of file reached"
      end

      def size_of(length)
        length = number_of(length) unless length.nil?
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        length
      end
    end
    private_constant :PlainInput
  end
end
