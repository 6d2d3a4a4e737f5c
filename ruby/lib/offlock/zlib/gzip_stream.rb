# frozen_string_literal: true

module Offlock
  module Zlib
    # The common part of GzipInput and GzipOutput: the state of a gzip file. It is not in the GzipReader or GzipWriter
    # itself, so that a subclass may use any names for its methods and variables, and so that a frozen one works as in
    # the original.
    class GzipStream
      include Conversions

      # The number of bytes between two calls of a `progress:` callback.
      REPORT_EVERY = 1 << 20

      def sync = io && (@sync || false)
      def crc = io && @crc
      def level = io && @level
      def os_code = io && OS_CODE
      def mtime = io && Time.at(@mtime || 0)
      def orig_name = io && @orig_name&.dup
      def comment = io && @comment&.dup

      def sync=(sync)
        io
        @sync = sync ? true : false
      end

      def closed? = @closed != false

      # Ends the gzip file without closing the underlying object, which it returns.
      def finish
        file = io
        @closed = true
        file
      end

      # Ends the gzip file, closes the underlying object, and returns that.
      def close
        return if closed?

        file = io
        begin
          finish
        ensure
          file.close if file.respond_to?(:close)
        end
        file
      end

      # The underlying object. Raises if the gzip file was ended.
      def io
        return @io if @closed == false

        raise GzipFile::Error, "closed gzip stream"
      end

      private

      # The total number of bytes, if it is known.
      def total_size = nil

      # Calls `progress` with the number of bytes done, about every megabyte and at the end.
      def report(done, ending: false)
        return unless @progress && (ending || done - (@told || 0) >= REPORT_EVERY)

        @told = done
        @progress.call(done, total_size)
      end
    end
    private_constant :GzipStream
  end
end
