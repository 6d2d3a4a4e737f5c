# frozen_string_literal: true

require "stringio"

module Offlock
  module Zlib
    # Writes a gzip file.
    class GzipWriter < GzipFile
      # Plain bytes that are collected before they are compressed.
      GATHER = 1 << 14
      private_constant :GATHER

      def self.open(path, level = nil, strategy = nil, **options, &block)
        wrap(File.open(path, "wb"), level, strategy, **options, &block)
      end

      # A String as a gzip file of one member.
      def self.pack(string, level, strategy, progress)
        packed = StringIO.new(String.new)
        report = ->(done, _) { progress.call(done, string.bytesize) }
        wrap(packed, level, strategy, progress: report) do |file|
          (0...string.bytesize).step(REPORT_EVERY) { |at| file.write(string.byteslice(at, REPORT_EVERY)) }
        end
        packed.string
      end

      # `threads:` other than 1 (0: one per core) compresses on so many threads, in blocks that every reader reads as one stream.
      # `progress:` is called with the plain bytes that were compressed, and nil.
      def initialize(io, level = nil, strategy = nil, threads: 1, progress: nil, **options)
        super()
        @progress = progress
        level ||= DEFAULT_COMPRESSION
        strategy ||= DEFAULT_STRATEGY
        @engine = threads == 1 ? Engine.deflate(level, -MAX_WBITS, DEF_MEM_LEVEL, strategy) : Engine.blocks(level, strategy, threads)
        @gather = threads == 1 ? GATHER : GATHER * 16
        @level = level
        @plain = String.new
        @crc = @size = 0
        take_encodings(options)
        open_on(io)
      end

      def mtime=(time)
        change_header
        @mtime = time.is_a?(Integer) ? time : time.to_i
      end

      def mtime = io && Time.at(@mtime || 0)

      def orig_name=(name)
        change_header
        @orig_name = to_header(name)
      end

      def comment=(comment)
        change_header
        @comment = to_header(comment)
      end

      # The checksum of what was written so far.
      def crc
        io
        compress(NO_FLUSH)
        @crc
      end

      # How many plain bytes were written so far.
      def pos = io && (@size + @plain.bytesize)
      alias tell pos

      def write(*strings)
        io
        strings.sum { |string| put(string.to_s) }
      end

      def <<(object)
        write(object)
        self
      end

      def print(*objects)
        objects = [$_] if objects.empty?
        objects.each_with_index do |object, index|
          write($,) if $, && index.positive?
          write(object)
        end
        write($\) if $\
        nil
      end

      def puts(*objects)
        write("\n") if objects.empty?
        objects.each { |object| put_line(object) }
        nil
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
        io
        raise StreamError, "stream error" if @ended && flush != FINISH

        compress(flush || SYNC_FLUSH)
        io.flush if io.respond_to?(:flush)
        self
      end

      # Ends the gzip file, and leaves open what it is in.
      def finish
        io
        compress(FINISH)
        io.write([@crc, @size & 0xffffffff].pack("VV"))
        report(@size, ending: true)
        @closed = true
        @engine = nil
        @io
      end

      private

      def put_line(object)
        array = Array.try_convert(object) unless object.is_a?(String)
        return put_lines(array) if array

        line = object.to_s
        write(line)
        write("\n") unless line.getbyte(-1) == 10
      end

      # Each element on a line of its own; an array inside itself is told as `puts` tells it everywhere.
      def put_lines(array)
        return put_line("[...]") if (@within ||= []).any? { |outer| outer.equal?(array) }

        @within.push(array)
        begin
          puts(*array)
        ensure
          @within.pop
        end
      end

      def put(string)
        raise StreamError, "stream error" if @ended

        string = converted(string, @external) || string if @internal && string.encoding != @external
        bytes = string.bytesize
        if @plain.empty? && bytes >= @gather
          deflate(string, @sync ? SYNC_FLUSH : NO_FLUSH)
        else
          gather(string)
        end
        bytes
      end

      def gather(string)
        @plain << (string.encoding == Encoding::BINARY || string.ascii_only? ? string : string.b)
        compress(@sync ? SYNC_FLUSH : NO_FLUSH) if @sync || @plain.bytesize >= @gather
      end

      def compress(flush)
        return if @ended

        plain, @plain = @plain, String.new
        deflate(plain, flush) unless plain.empty? && flush == NO_FLUSH
      end

      def deflate(plain, flush)
        write_header unless @header_written
        @crc = Zlib.crc32(plain, @crc)
        @size += plain.bytesize
        packed = run(plain, flush)
        @ended = true if flush == FINISH
        io.write(packed) unless packed.empty?
        report(@size)
      end

      # An interrupt leaves what was not read to the next run.
      def run(plain, flush)
        plain = @unread << plain.b if @unread
        @engine.run(plain, flush, nil, :auto)
      ensure
        unread = @engine.unread
        @unread = unread.zero? ? nil : plain.byteslice(-unread, unread).b
      end

      def write_header
        @header_written = true
        @mtime ||= Time.now.to_i
        io.write(Zlib.send(:native_header, @level, @mtime & 0xffffffff, @orig_name, @comment))
      end

      def change_header
        io
        raise GzipFile::Error, "header is already written" if @header_written || !@plain.empty?
      end

      # Header fields end at their first NUL.
      def to_header(string)
        string.to_str.b[/\A[^\0]*/n]
      end
    end
  end
end
