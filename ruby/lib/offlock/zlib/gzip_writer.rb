# frozen_string_literal: true

require "stringio"

module Offlock
  module Zlib
    # Writes a gzip file.
    class GzipWriter < GzipFile
      include Printing

      def self.open(path, level = nil, strategy = nil, **options, &block)
        wrap(File.open(path, "wb"), level, strategy, **options, &block)
      end

      # A String as a gzip file of one member.
      def self.pack(string, level, strategy, progress)
        packed = StringIO.new(String.new)
        report = ->(done, _) { progress.call(done, string.bytesize) }
        wrap(packed, level, strategy, progress: report) do |file|
          every = GzipStream::REPORT_EVERY
          (0...string.bytesize).step(every) { |at| file.write(string.byteslice(at, every)) }
        end
        packed.string
      end

      # `threads:` other than 1 (0: one per core) compresses on that many threads, in blocks that every reader reads as
      # one stream. `progress:` is called with the number of compressed plain bytes, and nil.
      def initialize(io, level = nil, strategy = nil, **options)
        super()
        @offlock_file = GzipOutput.new(io, level, strategy)
        @offlock_file.set(**options) unless options.empty?
        offlock_keep_path(io.path) if io.respond_to?(:path)
      end

      def mtime=(time)
        offlock_file.mtime = time
      end

      def orig_name=(name)
        offlock_file.orig_name = name
      end

      def comment=(comment)
        offlock_file.comment = comment
      end

      # The number of plain bytes written so far.
      def pos = offlock_file.pos
      alias tell pos

      def write(*strings)
        file = @offlock_file || offlock_file
        file.io
        strings.sum { |string| file.put(string.to_s) }
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
        byte = object.getbyte(0) if object.is_a?(String)
        write(((byte || Zlib.send(:native_int, object)) & 0xff).chr)
        object
      end

      def flush(flush = SYNC_FLUSH)
        offlock_file.flush(flush)
        self
      end
    end
  end
end
