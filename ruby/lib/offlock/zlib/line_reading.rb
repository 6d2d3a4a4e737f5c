# frozen_string_literal: true

module Offlock
  module Zlib
    # What GzipReader gives line by line.
    module LineReading
      def lineno = io && @lineno

      def lineno=(number)
        io
        @lineno = Zlib.send(:native_int, number)
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

      # Separator and limit from what `gets` is called with.
      def limits(arguments)
        return [$/, nil] if arguments.empty?
        return arguments if arguments.size == 2

        arguments[0].nil? || arguments[0].respond_to?(:to_str) ? [arguments[0], nil] : [$/, arguments[0]]
      end

      def next_line(separator, limit)
        io
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

        whole_characters(wanted)&.bytesize || wanted
      end

      # Where the separator ends, if it does within `wanted` bytes of what is to come.
      def line_end(separator, wanted)
        from = 0
        loop do
          if separator && (at = @plain.byteindex(separator, @at + from))
            return at + separator.bytesize - @at
          end
          return if wanted && buffered >= wanted

          if drained?
            raise @failure if @failure && !in_footer?

            return
          end
          from = separator ? [buffered - separator.bytesize + 1, 0].max : 0
          more
        end
      end

      def chomped(line, arguments)
        separator = limits(arguments)[0] or return line
        line.chomp(separator.empty? ? "\n" : separator)
      end
    end
    private_constant :LineReading
  end
end
