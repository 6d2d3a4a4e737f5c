# frozen_string_literal: true

module Offlock
  module MessagePack
    # Bytes that come in at the end and go out at the front, perhaps from or to an IO.
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

      # Up to +length+ bytes; with an IO as many as it has. Without +length+ all, and +nil+ at the end only with it.
      def read(length = nil, out = nil)
        out = out ? out.replace("".b) : "".b
        return out if length&.zero?

        gather(length) { |bytes| out << bytes }
        length && out.empty? ? nil : out
      end

      # Exactly +length+ bytes, or EOFError. Without +length+ all.
      def read_all(length = nil, out = nil)
        return read(nil, out) unless length

        fill_to(length)
        bytes = take(length)
        out ? out.replace(bytes) : bytes
      end

      # Passes over up to +length+ bytes; returns how many there were.
      def skip(length)
        skipped = 0
        gather(length) { |bytes| skipped += bytes.bytesize }
        skipped
      end

      # Passes over exactly +length+ bytes, or raises EOFError.
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
