# frozen_string_literal: true

require_relative "timestamp"

module Offlock
  module MessagePack
    # Packs Time as a timestamp: <tt>factory.register_type(-1, Time, packer: Time::Packer, unpacker: Time::Unpacker)</tt>
    module Time
      # Ractors can share a factory only if its callables are shareable.
      def self.shareable(callable) = defined?(Ractor) ? Ractor.make_shareable(callable) : callable
      private_class_method :shareable

      Unpacker = shareable(lambda do |payload|
        timestamp = Timestamp.from_msgpack_ext(payload)
        ::Time.at(timestamp.sec, timestamp.nsec, :nanosecond)
      end)

      Packer = shareable(->(time) { Timestamp.to_msgpack_ext(time.tv_sec, time.tv_nsec) })
    end
  end
end
