# frozen_string_literal: true

module Offlock
  module Lock
    # What a thread has used up: time, processor, waits for the lock, garbage collection, delays by the system.
    # @private
    class Gauges
      CAUSES = %w[computed blocked gc lock not_run].freeze
      @users = 0
      @has_enabled = false

      class << self
        # The time, in nanoseconds.
        def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

        # Measures waits for the lock, for one more user.
        def enter
          Instrumentation.exclusively(nil) do
            @users += 1
            next if @users > 1 || LocalTimer.enabled?

            LocalTimer.enable
            @has_enabled = true
          end
        end

        # Ends what {enter} began.
        def leave
          Instrumentation.exclusively(nil) do
            @users -= 1
            next if @users.positive? || !@has_enabled

            @has_enabled = false
            LocalTimer.disable
          end
        end
      end

      # Reads of the calling thread.
      def initialize
        @thread = Thread.current
        @native_id = @thread.native_thread_id || 0
      end

      # What the calling thread has used up, in nanoseconds: the time, processor, waits for the lock, delays by the system,
      # garbage collection.
      def read(now)
        processor = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
        [now, processor, *Native.usage(@thread, @native_id)]
      end

      # Divides so many nanoseconds before the second reading into parts, in the order of {CAUSES}. The first one may be a
      # little older than that, so each part is limited by what is left.
      def self.split(base, reading, length)
        _, processor, lock, delay, collected = reading.zip(base).map { |now, before| [now - before, 0].max }
        lock = [lock, length].min
        collected = [collected, length - lock].min
        computed = (processor - collected).clamp(0, length - lock - collected)
        left = length - lock - collected - computed
        not_run = [delay, left].min
        [computed, left - not_run, collected, lock, not_run]
      end
    end
    private_constant :Gauges
  end
end
