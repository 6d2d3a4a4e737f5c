# frozen_string_literal: true

module Offlock
  module MessagePack
    # Packs Integers of any size: a byte for the sign, then words of 32 bits, the least significant first.
    module Bigint
      CHUNK_BITLENGTH = 32
      FORMAT = "CL>*"

      def self.to_msgpack_ext(bigint)
        size = bigint.abs
        words = (0...size.bit_length).step(CHUNK_BITLENGTH).map { |offset| size[offset, CHUNK_BITLENGTH] }
        [bigint.negative? ? 1 : 0, *words].pack(FORMAT)
      end

      def self.from_msgpack_ext(data)
        sign, *words = data.unpack(FORMAT)
        size = words.reverse_each.reduce(0) { |sum, word| (sum << CHUNK_BITLENGTH) + word }
        sign.zero? ? size : -size
      end
    end
  end
end
