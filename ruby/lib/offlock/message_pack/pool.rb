# frozen_string_literal: true

module Offlock
  module MessagePack
    class Factory
      # Packers and unpackers for reuse. One thread at a time uses a member; when all are in use, the pool makes another
      # one.
      class Pool
        def initialize(factory, size, options = nil)
          options = nil if options&.empty?
          @packers = Members.new(size) { factory.packer(options).freeze }
          @unpackers = Members.new(size) { factory.unpacker(options).freeze }
        end

        def load(data)
          @unpackers.with do |unpacker|
            unpacker.feed(data)
            unpacker.full_unpack
          end
        end

        def dump(object)
          @packers.with do |packer|
            packer.write(object)
            packer.full_pack
          end
        end

        def unpacker(&) = @unpackers.with(&)

        def packer(&) = @packers.with(&)
      end

      # The packers or the unpackers of a pool.
      class Members
        def initialize(size, &make)
          @size = size
          @make = make
          @idle = []
        end

        def with
          member = @idle.pop || @make.call
          yield member
        ensure
          put_back(member) if member
        end

        private

        # Members beyond the pool's size are dropped.
        def put_back(member)
          return if @idle.size >= @size

          member.reset
          @idle << member
        end
      end
      private_constant :Members
    end
  end
end
