# frozen_string_literal: true

module Offlock
  module Zlib
    # The implementation of GzipReader, apart from the object that a program may subclass.
    class GzipInput < GzipStream
      include PlainInput

      # The possible errors after the content.
      FOOTER_ERRORS = [GzipFile::CRCError, GzipFile::LengthError, GzipFile::NoFooter].freeze
      NO_HEADER = [0, 0, OS_CODE, nil, nil].freeze

      attr_reader :plain

      # Reads nothing yet: the caller then calls `start`. For any options: native code opens a reader without options.
      def initialize(io, max_output: nil, threads: 1, progress: nil, **options)
        super()
        @io = io
        @closed = false
        @max_output = max_output
        @progress = progress
        take_encodings(options) unless options.empty?
        @external ||= Encoding.default_external
        @plain = ReadBuffer.new(@external, @external.ascii_compatible?, !@internal.nil?)
        @threaded = true if threads != 1
        @engine = Engine.gunzip(threads)
        @read = @made = @crc = 0
      end

      # Begins with the bytes of the file that were read already, or with the next ones. Fails if it is not a gzip file.
      def start(packed)
        packed ||= read_packed or not_gzip("")
        @read = packed.bytesize
        until (@header = header_of(packed))
          more = read_packed or not_gzip(packed)
          packed += more
        end
        # A copy, because the program may change its String.
        @packed = packed.b
      end

      def mtime = Time.at(header[0])
      def os_code = header[2]
      def orig_name = header[3]&.dup
      def comment = header[4]&.dup

      def level
        flags = header[1]
        return BEST_SPEED if flags.anybits?(4)

        flags.anybits?(2) ? BEST_COMPRESSION : DEFAULT_COMPRESSION
      end

      # The number of bytes of the file that belong to the member, as far as it was read.
      def packed_size = @read - (@packed ? @packed.bytesize : 0)

      # The checksum of the plain bytes that the program has read so far.
      def crc = io && note_crc

      # The bytes after the member, as far as they were read from the file, or nil.
      def unused
        return if closed?

        tell_failure if in_footer? && @plain.size.zero?
        @packed.dup if @over && @packed
      end

      # Does not close the underlying object.
      def finish
        file = io
        report(@read, ending: true) if @progress && drained?
        @closed = true
        nothing_left = @failure && @plain.size.zero?
        @plain.clear
        @engine.close
        tell_failure if nothing_left && in_footer?
        file
      end

      # Returns to the beginning of the file.
      def rewind
        io.seek(-@read, IO::SEEK_CUR)
        @engine.reset
        @plain.clear
        @packed = @over = @failure = @footer_told = nil
        @read = @made = @crc = 0
        start(nil)
        0
      end

      private

      # There is no header yet if the file that is being opened calls the reader.
      def header = io && (@header || NO_HEADER)

      def total_size = (io.size if io.respond_to?(:size))

      # The fields of the header at the beginning of `head`; nil while it is incomplete.
      def header_of(head)
        Engine.header(head)
      rescue Zlib::Error => e
        not_gzip(head, e)
      end

      def not_gzip(head, failure = nil)
        if head.bytesize >= 10 && head.b.start_with?("\x1f\x8b".b)
          raise failure || GzipFile::Error.new("unexpected end of file")
        end

        error = GzipFile::Error.new("not in gzip format")
        error.instance_variable_set(:@input, head.empty? ? nil : head)
        raise error
      end

      # The next bytes of the file, as many as are available; nil at its end.
      def read_packed
        # Before the next read: if the callback raises, no data is lost.
        report(@read) if @progress
        window = @engine.window if @threaded
        packed = @io.respond_to?(:readpartial) && !window ? @io.readpartial(PACKED) : @io.read(window || PACKED)
        @read += packed.bytesize if packed
        packed
      rescue EOFError
        nil
      end

      # Decodes `packed` to at most `most` bytes, and keeps the input that was not read.
      def decode(packed, most)
        made = @engine.run(packed, NO_FLUSH, most)
        raise OutputLimitError, "the output would exceed max_output: #{@max_output} bytes" if @max_output && over_limit?(made)

        @made += made.bytesize
        case @engine.status
        when :end then @over = true
        when :failed then remember_failure
        end
        made
      ensure
        unread = @engine.unread
        @packed = unread.zero? ? nil : packed.byteslice(-unread, unread).force_encoding(Encoding::BINARY)
      end

      def over_limit?(made) = @made + made.bytesize > @max_output

      # A failure is raised only after everything before it was read.
      def remember_failure
        @engine.raise_failure
      rescue Zlib::Error => e
        @failure = e
      end

      # Raises the error of the file: a wrong checksum or length once, as the original does, any other error at each
      # attempt.
      def tell_failure
        return if @footer_told

        @footer_told = in_footer?
        raise @failure
      end

      # Returns whether only the checksum and length are wrong, or missing.
      def in_footer? = @failure && FOOTER_ERRORS.any? { |footer| footer === @failure }

      def more
        packed = @packed || read_packed
        return end_early unless packed || @engine.status == :full

        keep(decode(packed || "", PLAIN))
      end

      def end_early
        return @over = true if @engine.may_end?

        @failure = if @engine.in_trailer?
                     GzipFile::NoFooter.new("footer is not found")
                   else
                     GzipFile::Error.new("unexpected end of file")
                   end
      end

      # Adds the bytes that were read since the last call to the checksum.
      def note_crc
        uncounted = @plain.uncounted
        @crc = Zlib.crc32(uncounted, @crc) if uncounted
        @crc
      end

      def keep(made)
        note_crc
        @plain.replace(@plain.size.zero? ? made : @plain.rest << made)
      end
    end
    private_constant :GzipInput
  end
end
