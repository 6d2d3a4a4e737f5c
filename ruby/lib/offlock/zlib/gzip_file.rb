# frozen_string_literal: true

module Offlock
  module Zlib
    # What GzipWriter and GzipReader have in common. All that they are is in a GzipStream, so that the names of methods and
    # variables that a subclass chooses cannot get in its way.
    class GzipFile
      Error = ::Zlib::GzipFile::Error
      NoFooter = ::Zlib::GzipFile::NoFooter
      CRCError = ::Zlib::GzipFile::CRCError
      LengthError = ::Zlib::GzipFile::LengthError

      # The path of a file that has one, also after it is closed.
      module Path
        def path = @offlock_path
      end
      private_constant :Path

      class << self
        # Opens a gzip file on `args`; with a block, passes it on and closes it afterwards.
        def wrap(*args, **options)
          file = new(*args, **options)
          return file unless block_given?

          begin
            yield file
          ensure
            file.close unless file.closed?
          end
        end
      end

      # A copy is closed, as that of the original is.
      def initialize_copy(other)
        super
        @offlock_file = @offlock_plain = nil
      end

      def sync = offlock_file.sync
      def crc = offlock_file.crc
      def level = offlock_file.level
      def os_code = offlock_file.os_code
      def mtime = offlock_file.mtime
      def orig_name = offlock_file.orig_name
      def comment = offlock_file.comment
      def to_io = offlock_file.io
      alias inspect to_s

      def sync=(sync)
        offlock_file.sync = sync
      end

      def closed? = @offlock_file.nil? || @offlock_file.closed?

      # Ends the gzip file, and leaves open what it is in, which it returns.
      def finish = offlock_file.finish

      # Ends the gzip file, closes what it is in, and returns that.
      def close = @offlock_file&.close

      private

      # Never opened, or a copy.
      def offlock_file
        @offlock_file or raise Error, "closed gzip stream"
      end

      def offlock_keep_path(path)
        extend Path
        @offlock_path = path
      end
    end
  end
end
