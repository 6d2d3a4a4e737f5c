# frozen_string_literal: true

module Offlock
  module Zlib
    # The common part of GzipWriter and GzipReader. Their state is in a GzipStream, so that the methods and variables of
    # a subclass cannot conflict with it.
    class GzipFile
      Error = ::Zlib::GzipFile::Error
      NoFooter = ::Zlib::GzipFile::NoFooter
      CRCError = ::Zlib::GzipFile::CRCError
      LengthError = ::Zlib::GzipFile::LengthError

      # The path of a gzip file on an object with a path, also after it is closed.
      module Path
        def path = @offlock_path
      end
      private_constant :Path

      class << self
        # Opens a gzip file on `args`; with a block, yields it and closes it afterwards.
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

      # Ends the gzip file without closing the underlying object, which it returns.
      def finish = offlock_file.finish

      # Ends the gzip file, closes the underlying object, and returns that.
      def close = @offlock_file&.close

      private

      # Raises if the file was never opened, or is a copy.
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
