# frozen_string_literal: true

module Offlock
  module Zlib
    # The methods of GzipInput that read lines.
    module LineInput
      def lineno = io && @plain.lineno

      def lineno=(number)
        io
        @plain.lineno = number
      end

      def each_line(*arguments, chomp: false)
        io
        separator, limit = limits(arguments)
        raise ArgumentError, "invalid limit: 0 for each_line" if limit&.zero?

        while (line = (@plain.line(separator, chomp) unless limit) || next_line(separator, limit, chomp))
          yield line
        end
      end

      def readlines(*arguments, chomp: false)
        lines = []
        io
        separator, limit = limits(arguments)
        loop do
          @plain.lines_to(lines, separator, chomp) unless limit
          line = next_line(separator, limit, chomp) or return lines
          lines << line
        end
      end

      # The next line for these arguments of `gets`.
      def read_line(*arguments, chomp: false) = next_line(*limits(arguments), chomp)

      private

      # The separator and the limit from the arguments of `gets`.
      def limits(arguments)
        case arguments.size
        when 0 then [Zlib.send(:native_separator), nil]
        when 1 then separator_or_limit(*arguments)
        when 2 then [arguments[0] && string_of(arguments[0]), arguments[1] && number_of(arguments[1])]
        else raise ArgumentError, "wrong number of arguments (given #{arguments.size}, expected 0..2)"
        end
      end

      def separator_or_limit(argument)
        return [nil, nil] if argument.nil?

        separator = String.try_convert(argument)
        separator ? [separator, nil] : [Zlib.send(:native_separator), number_of(argument)]
      end

      def next_line(separator, limit, chomp)
        io
        return text(+"") if limit&.zero?
        return unless fill(1)

        paragraph = separator && separator.empty?
        skip_newlines if paragraph
        line = cut_line(paragraph ? "\n\n" : separator, limit) or return
        skip_newlines if paragraph
        @plain.lineno += 1
        return line unless chomp && separator

        line.chomp(paragraph ? "\n" : separator)
      end

      def cut_line(separator, limit)
        size = line_size(separator, limit)
        return if size.zero?

        # As in the original, a line shorter than any separator has no encoding.
        line = @plain.cut(size)
        separator && size < separator.bytesize && @plain.size.zero? ? line : text(line)
      end

      def skip_newlines
        nil until @plain.skip_newlines || !fill(1)
      end

      # The number of bytes in the next line.
      def line_size(separator, limit)
        wanted = limit&.positive? ? limit : nil
        found = line_end(separator, wanted)
        size = found || @plain.size
        return size unless wanted && size > wanted

        whole_characters(wanted)&.bytesize || wanted
      end

      # The offset after the separator, if it is within the next `wanted` bytes.
      def line_end(separator, wanted)
        from = 0
        loop do
          found = separator && @plain.find(separator, from)
          return found if found
          return if wanted && @plain.size >= wanted

          if drained?
            raise @failure if @failure && !in_footer?

            return
          end
          from = separator ? [@plain.size - separator.bytesize + 1, 0].max : 0
          more
        end
      end
    end
    private_constant :LineInput
  end
end
