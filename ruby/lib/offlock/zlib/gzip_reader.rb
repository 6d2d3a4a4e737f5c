# frozen_string_literal: true

module Offlock
  module Zlib
    # Reads the first member of a gzip file; all members with `threads:`.
    class GzipReader < GzipFile
      include Enumerable

      # Packed bytes that are read at a time, and plain bytes that are made of them at a time.
      PACKED = 1 << 16
      PLAIN = 1 << 18
      # What can be wrong behind the content.
      FOOTER_ERRORS = [CRCError, LengthError, NoFooter].freeze
      private_constant :PACKED, :PLAIN, :FOOTER_ERRORS

      class << self
        def open(path, **options, &block)
          wrap(File.open(path, "rb"), **options, &block)
        end

        # All members of the file in `io`: as one String, or line by line to a block. `threads:` is as for `new`.
        def zcat(io, threads: 1, max_output: nil, **options, &block)
          return together(io, threads: threads, max_output: max_output, **options, &block) if threads != 1

          plain = block ? nil : String.new
          lead = nil
          loop do
            member = new(io, lead: lead, max_output: max_output, **options)
            block ? member.each(&block) : plain << member.read.b
            max_output -= member.pos if max_output
            lead = member.unused
            member.finish
            break if lead.nil? && (lead = io.read(1)).nil?
          end
          plain&.force_encoding(options[:external_encoding] || Encoding.default_external)
        end

        # All that a reader with these options gives of a gzip file in a String.
        def unpack(string, **options) = wrap(StringIO.new(string), external_encoding: Encoding::BINARY, **options, &:read)

        private

        def together(io, **options, &block)
          reader = new(io, **options)
          made = block ? reader.each(&block) && nil : reader.read
          reader.finish
          made
        end
      end

      attr_accessor :lineno

      # `max_output:` is how many bytes may come out in all. With `threads:` other than 1 (0: one per core), all members of the
      # file are read as one content, as many of them at once; then the reader holds, for each thread, at most 2 MB of the
      # file and 8 MB of its content, four times that where members are large, beside what is asked for. The header is the
      # first member's.
      # `progress:` is called with the bytes of the file that were read, and its size if it has one.
      def initialize(io, max_output: nil, threads: 1, progress: nil, lead: nil, **options)
        super()
        open_on(io)
        @max_output = max_output
        @progress = progress
        take_encodings(options)
        @external ||= Encoding.default_external
        @engine = Engine.gunzip(threads)
        start(lead)
      end

      def external_encoding = @external
      def mtime = Time.at(@mtime)

      # The checksum of the plain bytes that came out so far.
      def crc = io && note_crc

      # How many plain bytes were read.
      def pos = @made - buffered
      alias tell pos

      # A bad checksum is left to be told by who reads on.
      def eof?
        io
        !fill(1)
      rescue *FOOTER_ERRORS
        true
      end
      alias eof eof?

      # What followed the member in what was read of the file, or nil.
      def unused
        io
        raise @failure if buffered.zero? && in_footer?

        @over && !@packed.empty? ? @packed.dup : nil
      end

      # Leaves open what the file is in.
      def finish
        file = io
        report(@read, ending: true) if drained?
        @closed = true
        raise @failure if @failure && buffered.zero?

        file
      end

      # Back to the beginning of the file.
      def rewind
        io.seek(-@read, IO::SEEK_CUR)
        @engine.reset
        start(nil)
        0
      end

      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        io
        return hand(length.zero? ? +"" : read_some(length), buffer) if length

        fill(nil)
        hand(text(cut(buffered)), buffer)
      end

      def readpartial(most = nil, buffer = nil)
        raise ArgumentError, "negative length #{most} given" if most&.negative?

        io
        return hand(+"", buffer) if most&.zero?
        raise EOFError, "end of file reached" unless fill(1)

        hand(cut([most || PLAIN, buffered].min), buffer)
      end

      def getbyte
        return unless fill(1)

        @at += 1
        @plain.getbyte(@at - 1)
      end

      def readbyte = getbyte || end_of_file

      def each_byte
        return to_enum(:each_byte) unless block_given?

        while (byte = getbyte)
          yield byte
        end
        self
      end

      def getc
        return unless fill(1)

        # No encoding needs more than 8 bytes to a character; most need a look at 4.
        fill([4, buffered + 1].max) if buffered < 4
        char = @plain.byteslice(@at, [8, buffered].min).force_encoding(@external)[0]
        size = char.bytesize
        text(cut(size))
      end

      def readchar = getc || end_of_file

      def each_char
        return to_enum(:each_char) unless block_given?

        while (char = getc)
          yield char
        end
        nil
      end

      def ungetbyte(byte)
        unread((byte & 0xff).chr) if byte
        nil
      end

      def ungetc(char)
        return if char.nil?

        char = char.chr(@external) if char.is_a?(Integer)
        char = char.encode(@external) if @internal && char.encoding == @internal
        unread(char.b)
        nil
      end

      def gets(*arguments, chomp: false)
        line = next_line(*limits(arguments))
        return $_ = nil unless line

        @lineno += 1
        line = chomped(line, arguments) if chomp
        $_ = line
      end

      def readline(*arguments, **options) = gets(*arguments, **options) || end_of_file

      def each_line(*arguments, **options)
        return to_enum(:each_line, *arguments, **options) unless block_given?
        raise ArgumentError, "invalid limit: 0 for each_line" if limits(arguments)[1]&.zero?

        while (line = gets(*arguments, **options))
          yield line
        end
        self
      end
      alias each each_line

      def readlines(*arguments, **options) = each_line(*arguments, **options).to_a

      private

      def total_size = (io.size if io.respond_to?(:size))

      def start(lead)
        @packed = lead ? lead.b : String.new
        @read = @packed.bytesize
        @plain = String.new
        @at = @made = @lineno = @crc = @counted = 0
        @over = @failure = nil
        read_header
      end

      def buffered = @plain.bytesize - @at

      # Reads up to the end of the header, and raises if there is none.
      def read_header
        until (header = @engine.header)
          packed = @packed.empty? ? read_packed : @packed
          head = (head || String.new) << packed.to_s
          packed ? decode(packed, 0) : not_gzip(head)
          not_gzip(head) if @failure
        end
        @mtime, flags, @os_code, @orig_name, @comment = header
        @level = level_of(flags)
      end

      def level_of(flags)
        return BEST_SPEED if flags.anybits?(4)

        flags.anybits?(2) ? BEST_COMPRESSION : DEFAULT_COMPRESSION
      end

      def not_gzip(head)
        if head.bytesize >= 10 && head.start_with?("\x1f\x8b".b)
          raise @failure if @failure

          raise GzipFile::Error, "unexpected end of file"
        end
        error = GzipFile::Error.new("not in gzip format")
        error.instance_variable_set(:@input, head.empty? ? nil : head)
        raise error
      end

      # What the file has next, as much as is there; nil at its end.
      def read_packed
        # Before reading on: if the callback raises, nothing is lost.
        report(@read)
        window = @engine.window
        packed = io.respond_to?(:readpartial) && !window ? io.readpartial(PACKED) : io.read(window || PACKED)
        @read += packed.bytesize if packed
        packed
      rescue EOFError
        nil
      end

      # Decodes `packed` to at most `most` bytes, and keeps what was not read.
      def decode(packed, most)
        made = @engine.run(packed, NO_FLUSH, most, :auto)
        raise OutputLimitError, "the output would exceed max_output: #{@max_output} bytes" if over_limit?(made)

        @made += made.bytesize
        remember_end
        made
      ensure
        unread = @engine.unread
        @packed = unread.zero? ? String.new : packed.byteslice(-unread, unread).b
      end

      def over_limit?(made) = @max_output && @made + made.bytesize > @max_output

      # A failure is raised only when everything before it was read.
      def remember_end
        status = @engine.status
        @over = true if status == :end
        return unless status == :failed

        @engine.raise_failure
      rescue Zlib::Error => e
        @failure = e
      end

      # Tries to have `size` bytes buffered (nil: all there are); false when there is none at all.
      def fill(size)
        io
        more until size ? buffered >= size || drained? : drained?
        raise @failure if @failure && (buffered.zero? || cut_short?(size))

        buffered.positive?
      end

      def drained? = @over || @failure

      # A bad checksum is told when everything was read, bad data as soon as it keeps from reading on.
      def cut_short?(size)
        !(size && buffered >= size) && !in_footer?
      end

      # Whether only the checksum and length are wrong, or missing.
      def in_footer? = FOOTER_ERRORS.any? { |footer| footer === @failure }

      def more
        packed = @packed.empty? ? read_packed : @packed
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

      # Takes into the checksum what was read since the last time.
      def note_crc
        @crc = Zlib.crc32(@plain.byteslice(@counted, @at - @counted), @crc) if @at > @counted
        @counted = [@counted, @at].max
        @crc
      end

      def keep(made)
        note_crc
        @counted -= @at
        if buffered.zero?
          @plain, @at = made, 0
        else
          @plain = @plain.byteslice(@at..) if @at.positive?
          @at = 0
          @plain << made
        end
      end

      def cut(size)
        taken = @plain.byteslice(@at, size)
        @at += size
        taken
      end

      def read_some(length)
        fill(length) ? cut([length, buffered].min) : nil
      end

      # What is put back was in the checksum already.
      def unread(bytes)
        note_crc
        @counted += bytes.bytesize - @at
        @plain = bytes + @plain.byteslice(@at..)
        @at = 0
      end

      def hand(made, buffer)
        return made unless buffer

        buffer.replace(made || "")
        made && buffer
      end

      def text(bytes)
        bytes.force_encoding(@external)
        @internal ? bytes.encode(@internal, **@convert) : bytes
      end

      def end_of_file
        raise EOFError, "end of file reached"
      end

      # Separator and limit from what `gets` is called with.
      def limits(arguments)
        return [$/, nil] if arguments.empty?
        return arguments if arguments.size == 2

        arguments[0].nil? || arguments[0].respond_to?(:to_str) ? [arguments[0], nil] : [$/, arguments[0]]
      end

      def next_line(separator, limit)
        return text(+"") if limit&.zero?
        return unless fill(1)

        paragraph = separator && separator.empty?
        skip_newlines if paragraph
        size = line_size(paragraph ? "\n\n" : separator, limit)
        return if size.zero?

        line = text(cut(size))
        skip_newlines if paragraph
        line
      end

      def skip_newlines
        @at += 1 while fill(1) && @plain.getbyte(@at) == 10
      end

      # How many bytes the next line has.
      def line_size(separator, limit)
        wanted = limit&.positive? ? limit : nil
        found = line_end(separator&.b, wanted)
        size = found || buffered
        return size unless wanted && size > wanted

        whole_characters(wanted)
      end

      # Where the separator ends, if it does within `wanted` bytes of what is to come.
      def line_end(separator, wanted)
        from = 0
        loop do
          if separator && (at = @plain.byteindex(separator, @at + from))
            return at + separator.bytesize - @at
          end
          return if drained? || wanted && buffered >= wanted

          from = separator ? [buffered - separator.bytesize + 1, 0].max : 0
          more
        end
      end

      # `wanted` bytes, or a few more to the end of a character.
      def whole_characters(wanted)
        fill(wanted + 8)
        head = @plain.byteslice(@at, wanted + 8).force_encoding(@external)
        size = wanted
        size += 1 until size >= head.bytesize || head.byteslice(0, size).valid_encoding? || size - wanted >= 8
        size - wanted >= 8 ? wanted : size
      end

      def chomped(line, arguments)
        separator = limits(arguments)[0] or return line
        line.chomp(separator.empty? ? "\n" : separator)
      end
    end
  end
end
