# frozen_string_literal: true

module Offlock
  module Zstd
    # Reads all frames of a Zstandard file as one content, like an IO.
    #
    # It takes the encodings that {Zlib::GzipReader} takes (`external_encoding:`, ...).
    #
    # @example
    #   Offlock::Zstd::StreamReader.open("log.zst") { |file| file.each_line { |line| puts line } }
    class StreamReader
      include Enumerable
      include LineReading
      include Reading

      # Opens a file; with a block, yields the reader, closes it afterwards, and returns the block's value.
      def self.open(path, **options)
        reader = new(File.open(path, "rb"), **options)
        return reader unless block_given?

        begin
          yield reader
        ensure
          reader.close unless reader.closed?
        end
      end

      # @param io [#readpartial, #read] the file
      # @param dict [Dictionary, String, nil]
      # @param max_output [Integer, nil] the most bytes to decompress
      # @param window_log_max [Integer, nil] the largest window to accept, as a power of two
      def initialize(io, dict: nil, max_output: nil, window_log_max: nil, **encodings)
        @offlock_file = ReadInput.new(io, dict: dict, max_output: max_output, window_log_max: window_log_max, **encodings)
        @offlock_plain = @offlock_file.plain
      end

      def initialize_copy(_other)
        raise TypeError, "can't copy #{self.class}"
      end

      # The underlying object.
      def to_io = offlock_file.io
      def closed? = offlock_file.closed?

      # Ends the reader without closing the underlying object, which it returns.
      def finish = offlock_file.finish

      # Ends the reader and closes the underlying object, if it can be closed. Returns nil.
      def close
        return if closed?

        file = finish
        file.close if file.respond_to?(:close)
        nil
      end

      private

      def offlock_file = @offlock_file || raise(IOError, "uninitialized stream")
    end
  end
end
