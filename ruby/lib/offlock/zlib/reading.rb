# frozen_string_literal: true

module Offlock
  module Zlib
    # The methods of GzipReader, and of its like for other formats, that read bytes and characters. The object has its state
    # in `offlock_file`, and the state's ReadBuffer in `@offlock_plain`.
    module Reading
      def external_encoding = offlock_file.external_encoding

      # The number of plain bytes that were read.
      def pos = offlock_file.pos
      alias tell pos

      def eof? = offlock_file.eof?
      alias eof eof?

      # Returns to the beginning of the file.
      def rewind = offlock_file.rewind

      def read(length = nil, buffer = nil)
        some = @offlock_plain&.exactly(length) if length && !buffer
        some || offlock_file.read(length, buffer)
      end

      def readpartial(most = nil, buffer = nil) = offlock_file.readpartial(most, buffer)
      def getbyte = @offlock_plain&.getbyte || offlock_file.getbyte
      def readbyte = offlock_file.readbyte
      def getc = @offlock_plain&.char || offlock_file.getc
      def readchar = offlock_file.readchar

      def each_byte(&block)
        return to_enum(:each_byte) unless block

        offlock_file.each_byte(&block)
        self
      end

      def each_char(&block)
        return to_enum(:each_char) unless block

        offlock_file.each_char(&block)
        nil
      end

      def ungetbyte(byte) = offlock_file.ungetbyte(byte)
      def ungetc(char) = offlock_file.ungetc(char)
    end
    private_constant :Reading
  end
end
