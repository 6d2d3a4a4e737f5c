# frozen_string_literal: true

module Offlock
  module Zlib
    # The implementation of GzipWriter, apart from the object that a program may subclass.
    class GzipOutput < GzipStream
      # The number of plain bytes that are collected before they are compressed.
      GATHER = 1 << 14
      NOTHING = "".b.freeze

      # Programs make one for every response of theirs, so this does no more than all need.
      def initialize(io, level = nil, strategy = nil)
        super()
        @level = level || DEFAULT_COMPRESSION
        @strategy = strategy || DEFAULT_STRATEGY
        @engine = Engine.deflate(@level, -MAX_WBITS, DEF_MEM_LEVEL, @strategy)
        @gather = GATHER
        @plain = String.new
        @crc = @size = 0
        @io = io
        @closed = false
      end

      # `threads:` other than 1 (0: one per core) compresses on that many threads, in blocks that every reader reads as
      # one stream. `progress:` is called with the number of compressed plain bytes, and nil.
      def set(threads: 1, progress: nil, **options)
        @progress = progress
        take_encodings(options)
        return if threads == 1

        @engine = Engine.blocks(@level, @strategy, threads)
        @gather = GATHER * 16
      end

      def mtime=(time)
        change_header
        @mtime = Zlib.send(:native_uint, Integer(time))
      end

      def orig_name=(name)
        change_header
        @orig_name = to_header(name)
      end

      def comment=(comment)
        change_header
        @comment = to_header(comment)
      end

      # The checksum of the bytes written so far.
      def crc
        io
        compress(NO_FLUSH)
        @crc
      end

      # The number of plain bytes written so far.
      def pos = io && (@size + @plain.bytesize)
      alias tell pos

      # Writes one String, and returns its size.
      def put(string)
        raise StreamError, "stream error" if @ended

        @written = true
        string = converted(string, @external) || string if @internal && string.encoding != @external
        bytes = string.bytesize
        if @plain.empty? && bytes >= @gather
          deflate(string, @sync ? SYNC_FLUSH : NO_FLUSH)
        else
          gather(string)
        end
        bytes
      end

      def flush(flush = SYNC_FLUSH)
        io
        raise StreamError, "stream error" if @ended && flush != FINISH

        flush ||= SYNC_FLUSH
        @written = true unless flush == NO_FLUSH
        compress(flush)
        io.flush if io.respond_to?(:flush)
      end

      # Ends the gzip file without closing the underlying object.
      def finish
        file = io
        packed = @ended ? String.new : pack(take_plain, FINISH)
        file.write([@crc, @size & 0xffffffff].pack("VV", buffer: packed))
        report(@size, ending: true)
        @closed = true
        # The underlying object may have closed it already, during a write.
        @engine&.close
        @engine = nil
        file
      end

      private

      def gather(string)
        @plain << (string.encoding == Encoding::BINARY || string.ascii_only? ? string : string.b)
        compress(@sync ? SYNC_FLUSH : NO_FLUSH) if @sync || @plain.bytesize >= @gather
      end

      def compress(flush)
        return if @ended || (flush == NO_FLUSH && @plain.empty?)

        deflate(take_plain, flush)
      end

      def take_plain
        return NOTHING if @plain.empty?

        plain, @plain = @plain, String.new
        plain
      end

      def deflate(plain, flush)
        packed = pack(plain, flush)
        io.write(packed) unless packed.empty?
        report(@size)
      end

      # The compressed bytes of `plain`, after the header if that was not written yet.
      def pack(plain, flush)
        unless plain.empty?
          @crc = Zlib.crc32(plain, @crc)
          @size += plain.bytesize
        end
        packed = run(plain, flush)
        @ended = true if flush == FINISH
        @header_made ? packed : make_header << packed
      end

      # After an interrupt, the next run reads the rest of the input.
      def run(plain, flush)
        engine = @engine or raise GzipFile::Error, "closed gzip stream"
        plain = @unread << plain.b if @unread
        engine.run(plain, flush, nil)
      ensure
        unread = engine ? engine.unread : 0
        @unread = unread.zero? ? nil : plain.byteslice(-unread, unread).b
      end

      def make_header
        @header_made = true
        @mtime ||= Process.clock_gettime(Process::CLOCK_REALTIME, :second)
        Zlib.send(:native_header, @level, @mtime, @orig_name, @comment)
      end

      def change_header
        io
        raise GzipFile::Error, "header is already written" if @written
      end

      # Header fields end at their first NUL.
      def to_header(string)
        field = string_of(string)
        field.byteslice(0, field.b.index("\0") || field.bytesize)
      end
    end
    private_constant :GzipOutput
  end
end
