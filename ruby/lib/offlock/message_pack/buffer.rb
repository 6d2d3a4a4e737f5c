# frozen_string_literal: true

module Offlock
  module MessagePack
    # A queue of bytes: writes append at the end, reads take from the front. It may read from an IO or flush to one.
    class Buffer
      undef_method :dup
      undef_method :clone

      def <<(string)
        write(string)
        self
      end
      alias append <<

      def empty? = size.zero?

      def to_a = [to_str]

      def flush
        write_to(io) if io
        self
      end

      def close = io&.close

      # Returns up to +length+ bytes, from the IO, too, if there is one; +nil+ at the end. Without +length+ returns all
      # bytes, an empty String at the end.
      def read(length = nil, out = nil)
        out = out ? out.replace("".b) : "".b
        return out if length&.zero?

        gather(length) { |bytes| out << bytes }
        length && out.empty? ? nil : out
      end

      # Returns exactly +length+ bytes, or raises EOFError. Without +length+ returns all bytes.
      def read_all(length = nil, out = nil)
        return read(nil, out) unless length

        fill_to(length)
        bytes = take(length)
        out ? out.replace(bytes) : bytes
      end

      # Skips up to +length+ bytes and returns the number of bytes skipped.
      def skip(length)
        skipped = 0
        gather(length) { |bytes| skipped += bytes.bytesize }
        skipped
      end

      # Skips exactly +length+ bytes, or raises EOFError.
      def skip_all(length)
        fill_to(length)
        take(length)
        self
      end

      private :take, :fill

      private

      def gather(length)
        left = length || Float::INFINITY
        loop do
          bytes = take(left.clamp(0, 1 << 30))
          yield bytes unless bytes.empty?
          left -= bytes.bytesize
          break if left.zero? || (empty? && !more?)
        end
      end

      def more?
        fill
      rescue EOFError
        false
      end

      def fill_to(length)
        fill || raise(EOFError, "end of buffer reached") while size < length
      end
    end
  end
end
