# frozen_string_literal: true

module Offlock
  module MessagePack
    # A point in time with a resolution of 1 ns: the extension of type -1.
    class Timestamp
      TYPE = -1

      TIMESTAMP32_MAX_SEC = (1 << 32) - 1
      TIMESTAMP64_MAX_SEC = (1 << 34) - 1

      # Seconds since 1970-01-01 UTC; may be negative.
      attr_reader :sec

      # Nanoseconds to add to the seconds.
      attr_reader :nsec

      def initialize(sec, nsec)
        @sec = sec
        @nsec = nsec
      end

      # Returns the timestamp of a payload of 4, 8 or 12 bytes. Raises MalformedFormatError for another size.
      def self.from_msgpack_ext(data)
        case data.bytesize
        when 4 then new(data.unpack1("L>"), 0)
        when 8
          both = data.unpack1("Q>")
          new(both & TIMESTAMP64_MAX_SEC, both >> 34)
        when 12
          nsec, sec = data.unpack("L>q>")
          new(sec, nsec)
        else raise MalformedFormatError, "Invalid timestamp data size: #{data.bytesize}"
        end
      end

      # Returns the shortest payload of a timestamp.
      def self.to_msgpack_ext(sec, nsec)
        if sec.negative? || nsec.negative? || sec > TIMESTAMP64_MAX_SEC
          [nsec, sec].pack("L>q>")
        elsif nsec.zero? && sec <= TIMESTAMP32_MAX_SEC
          [sec].pack("L>")
        else
          [(nsec << 34) | sec].pack("Q>")
        end
      end

      def to_msgpack_ext = self.class.to_msgpack_ext(sec, nsec)

      def ==(other)
        other.class == self.class && sec == other.sec && nsec == other.nsec
      end
    end
  end
end
