# frozen_string_literal: true

module Offlock
  module Zstd
    # The implementation of StreamReader, apart from the object that a program may subclass.
    #
    # Each line that moves bytes from one native object to the next calls nothing but native methods, between which Ruby
    # handles no interrupts: so none loses a byte. What Ruby's own IO loses if it is interrupted is read again from a file.
    class ReadInput
      include Zlib.const_get(:PlainInput)
      include Zlib.const_get(:Conversions)

      # The number of compressed bytes that are read at once.
      PACKED = 1 << 16

      attr_reader :plain

      def initialize(io, dict: nil, max_output: nil, window_log_max: nil, **options)
        @io = io
        @limits = { dict: dict, max_output: max_output, window_log_max: window_log_max }
        @closed = false
        take_encodings(options)
        @external ||= Encoding.default_external
        @plain = ReadBuffer.new(@external, @external.ascii_compatible?, !@internal.nil?)
        @in_parts = io.respond_to?(:readpartial)
        @start = start_of(io)
        begin_again
      end

      def closed? = @closed

      # The underlying object. Raises if the reader was closed.
      def io
        raise IOError, "closed stream" if @closed

        @io
      end

      # Returns to the beginning of the file.
      def rewind
        io.seek(-@read, IO::SEEK_CUR)
        begin_again
        0
      end

      # Does not close the underlying object, which it returns.
      def finish
        file = io
        @closed = true
        @plain.clear
        @stream = @failure = nil
        file
      end

      private

      def begin_again
        @stream = StreamingDecompress.new(**@limits)
        @plain.clear
        @over = @failure = nil
        @read = @made = 0
      end

      def drained? = @over || @failure

      def more
        return end_of_input unless !@stream.needs_input? || fetch

        if @plain.size.zero?
          @plain.replace(@stream.__send__(:native_read, PLAIN))
        else
          @plain.replace(@plain.rest << @stream.__send__(:native_read, PLAIN))
        end
        @made = @stream.__send__(:native_made)
      rescue OutputLimitError
        raise
      rescue Error => e
        @failure = e
      end

      # Passes the next bytes of the file to the decompressor, as many as are available; false at its end.
      def fetch
        @io.seek(@start + @read) if @start && @fetching
        @fetching = true
        @read += @stream.__send__(:native_feed, @in_parts ? @io.readpartial(PACKED) : @io.read(PACKED))
        @fetching = false
        true
      rescue EOFError
        @fetching = false
      end

      # The position at which reading a file began; nil for what has none.
      def start_of(io)
        io.pos if io.is_a?(IO)
      rescue SystemCallError, IOError
        nil
      end

      def end_of_input
        return @over = true if @stream.finished?

        @failure = Error.new("Compressed data ended before the end-of-stream marker was reached (at byte #{@read} of the input)")
      end
    end
    private_constant :ReadInput
  end
end
