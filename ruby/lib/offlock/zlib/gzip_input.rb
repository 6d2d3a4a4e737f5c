# frozen_string_literal: true

module Offlock
  module Zlib
    # The implementation of GzipReader, apart from the object that a program may subclass.
    class GzipInput < GzipStream
      include LineInput

      # The number of plain bytes that are decompressed at once.
      PLAIN = 1 << 18
      # No encoding needs more bytes for a character.
      LONGEST = 8
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

      def external_encoding = io && (@internal || @external)
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

      # The number of plain bytes that the program has read.
      def pos = io && (@made - @plain.size)
      alias tell pos

      # Does not raise on a bad checksum: the next read does.
      def eof?
        io
        more until @plain.size.positive? || drained?
        raise @failure if @failure && !in_footer? && @plain.size.zero?

        @plain.size.zero?
      end
      alias eof eof?

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

      def read(length = nil, buffer = nil)
        io
        length = size_of(length) unless length.nil?
        return hand(length.zero? ? String.new : read_some(length), buffer) if length

        made = fill(nil) ? text(@plain.cut(@plain.size)) : String.new
        buffer ? hand(made, buffer) : made
      end

      def readpartial(most = nil, buffer = nil)
        io
        most = size_of(most)
        return hand(String.new, buffer) if most&.zero?
        raise EOFError, "end of file reached" unless fill(1)

        hand(@plain.cut(most || PLAIN), buffer)
      end

      def getbyte
        @plain.getbyte || (@plain.getbyte if fill(1))
      end

      def readbyte = getbyte || end_of_file

      def each_byte
        io
        while (byte = @plain.getbyte || getbyte)
          yield byte
        end
      end

      def getc
        @plain.char || (text(@plain.cut(character_size)) if fill(1))
      end

      def readchar = getc || end_of_file

      def each_char
        io
        while (char = @plain.char || getc)
          yield char
        end
      end

      def ungetbyte(byte)
        io
        unread((byte & 0xff).chr.b) if byte
        nil
      end

      def ungetc(char)
        io
        return if char.nil?

        char = char.chr(@external) if char.is_a?(Integer)
        char = char.encode(@external) if @internal && char.encoding == @internal
        unread(char.b)
        nil
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

      # Tries to buffer `size` bytes (nil: all bytes). Returns false if there are none.
      def fill(size)
        io
        more until @over || @failure || (size && @plain.size >= size)
        tell_failure if @failure && (@plain.size.zero? || cut_short?(size))

        @plain.size.positive?
      end

      def drained? = @over || @failure

      # Returns whether bad data prevents the read. A bad checksum does not: it is raised after everything was read.
      def cut_short?(size)
        !(size && @plain.size >= size) && !in_footer?
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

      def read_some(length)
        fill(length) ? @plain.cut(length) : nil
      end

      # The bytes that are put back are in the checksum already.
      def unread(bytes)
        note_crc
        @plain.unread(bytes + @plain.rest, bytes.bytesize)
      end

      def hand(made, buffer)
        return made unless buffer

        buffer.replace(made || "")
        made && buffer
      end

      def text(bytes)
        bytes.force_encoding(@external)
        @internal ? converted(bytes, @internal) || bytes.force_encoding(Encoding::BINARY) : bytes
      end

      def end_of_file
        raise EOFError, "end of file reached"
      end

      # The next `wanted` bytes, or a few more up to the end of a character, without reading further. Nil for invalid
      # text.
      def whole_characters(wanted)
        (wanted...wanted + LONGEST).each do |size|
          fill(size)
          head = @plain.peek(size)
          return head if head.bytesize < size || head.valid_encoding?
        end
        nil
      end

      # The number of bytes in the next character.
      def character_size
        head = whole_characters(1) || @plain.peek(LONGEST)
        head[0].bytesize
      end

      def size_of(length)
        length = number_of(length) unless length.nil?
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        length
      end
    end
    private_constant :GzipInput
  end
end
