# frozen_string_literal: true

module Offlock
  module MessagePack
    class Factory
      # Packers and unpackers that are used again. A member in use belongs to one thread; when all are in use,
      # another one is made.
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

      # Either half of a pool.
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
          give_back(member) if member
        end

        private

        # A member too many is dropped.
        def give_back(member)
          return if @idle.size >= @size

          member.reset
          @idle << member
        end
      end
      private_constant :Members
    end
  end
end
