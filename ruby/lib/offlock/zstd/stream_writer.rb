# frozen_string_literal: true

module Offlock
  module Zstd
    # Writes a Zstandard file of one frame, like an IO. What is written is compressed when there are 16 KB of it, or with
    # {#flush}; after `sync = true`, with each call.
    #
    # A call that is interrupted has taken its data: it is written by the next call, {#flush} or {#close}.
    #
    # @example
    #   Offlock::Zstd::StreamWriter.open("log.zst", level: 5) { |file| file.puts("off the lock") }
    class StreamWriter
      include Printing

      # The number of bytes that are collected before they are compressed.
      GATHER = 1 << 14
      private_constant :GATHER

      # Opens a file; with a block, yields the writer, closes it afterwards, and returns the block's value.
      def self.open(path, **options)
        writer = new(File.open(path, "wb"), **options)
        return writer unless block_given?

        begin
          yield writer
        ensure
          writer.close unless writer.closed?
        end
      end

      # @return [Boolean] whether each call writes out what it is given
      attr_accessor :sync

      # @return [Integer] the number of bytes that were written to the writer
      attr_reader :pos
      alias tell pos

      # @param io [#write] the file
      # @param options [Hash] those of {StreamingCompress}
      def initialize(io, **options)
        @stream = StreamingCompress.new(**options)
        @io = io
        @plain = String.new
        @pos = 0
        @sync = @ended = @closed = false
      end

      def initialize_copy(_other)
        raise TypeError, "can't copy #{self.class}"
      end

      # The underlying object.
      def to_io
        raise IOError, "closed stream" if @closed

        @io
      end

      def closed? = @closed

      # @return [Integer] the size of the objects' Strings in bytes
      def write(*objects)
        to_io
        size = objects.sum { |object| put(object.to_s) }
        compress if @sync || @plain.bytesize >= GATHER
        flush if @sync
        size
      end

      def <<(object)
        write(object)
        self
      end

      def printf(format, *arguments)
        write(format(format, *arguments))
        nil
      end

      def putc(object)
        write(object.is_a?(String) ? object[0] : (Integer(object) & 0xff).chr)
        object
      end

      # Writes out all data so far.
      def flush
        to_io
        compress
        @stream.__send__(:native_flush, false)
        hand_over
        @io.flush if @io.respond_to?(:flush)
        self
      end

      # Ends the frame without closing the underlying object, which it returns.
      def finish
        file = to_io
        compress
        @ended ||= @stream.__send__(:native_flush, true)
        hand_over
        @closed = true
        file
      end

      # Ends the frame and closes the underlying object, if it can be closed. Returns nil.
      def close
        return if @closed

        file = @io
        begin
          finish
        ensure
          file.close if file.respond_to?(:close)
        end
        nil
      end

      private

      def put(string)
        raise IOError, "the frame was ended" if @ended

        bytes = string.bytesize
        @plain << (string.encoding == Encoding::BINARY || string.ascii_only? ? string : string.b)
        @pos += bytes
        bytes
      end

      # Ruby handles no interrupt between these assignments and the beginning of the native method, which keeps its input and
      # its output.
      def compress
        return if @plain.empty?

        plain = @plain
        @plain = String.new
        @stream.write(plain)
        hand_over
      end

      # The output is taken from the stream when `write` is called with it, not before.
      def hand_over
        @io.write(@stream.__send__(:native_take)) if @stream.__send__(:native_pending).positive?
      end
    end
  end
end
