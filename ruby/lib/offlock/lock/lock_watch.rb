# frozen_string_literal: true

module Offlock
  module Lock
    # A watch of the lock, made by {Lock.watch_lock}.
    class LockWatch
      include Log

      # @param hold [Numeric, nil] see {Lock.watch_lock}
      # @param wait [Numeric, nil] see {Lock.watch_lock}
      # @param interval [Numeric] see {Lock.watch_lock}
      # @param logger [#warn, nil] see {Lock.watch_lock}
      # @raise [ArgumentError] if a number is out of range, or both +hold+ and +wait+ are nil
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def initialize(hold:, wait:, interval:, logger:)
        limits = [hold, wait].compact
        raise ArgumentError, "neither hold nor wait is given" if limits.empty?
        raise ArgumentError, "interval: #{interval} is not a number of seconds" unless interval >= 0

        @interval, @logger = interval, logger
        @number = @left_out = 0
        @changing = Mutex.new
        @recorder = FlightRecorder.new(seconds: 1, memory: 1 << 20, stacks: [Trace::STACKS, limits.min / 2.0].min)
        watch(hold, wait)
      end

      # @return [Boolean] whether the lock is being watched, by this process
      def running? = @recorder.running?

      # @return [Integer] how many holds and waits were too long, logged or not
      attr_reader :number

      # Stops watching. A second call changes nothing. If holds and waits have been left out since the last line, a line
      # says how many.
      #
      # @return [void]
      def stop
        @recorder.stop
        left_out = last_left_out
        log("#{left_out} more left out since the last line") if left_out.positive?
        nil
      end

      # @return [String] whether the watch is running, and the number of what was too long
      def inspect = "#<#{self.class} #{running? ? "running" : "stopped"}, #{number} too long>"

      private

      def watch(hold, wait)
        @recorder.on_hold(hold) { |alarm| found(alarm) } if hold
        # The recorder's own threads wait, too, when they have something to tell.
        @recorder.on_wait(wait) { |alarm| found(alarm) unless alarm.waiting == FlightRecorder::WATCH } if wait
      rescue StandardError
        @recorder.stop
        raise
      end

      # Logs an alarm, unless the last line is too recent. Called by the recorder's threads.
      def found(alarm)
        left_out = @changing.synchronize { count }
        log(left_out.positive? ? "#{alarm} (#{left_out} more left out before)" : alarm.to_s) if left_out
      end

      # Returns how many were left out before this one; nil if it is left out, too.
      def count
        @number += 1
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        if @next && now < @next
          @left_out += 1
          nil
        else
          @next = now + @interval
          taken_left_out
        end
      end

      # In a trap handler Ruby refuses to lock a Mutex. A thread of the recorder may then be counting, at worst.
      def last_left_out
        @changing.synchronize { taken_left_out }
      rescue ThreadError
        taken_left_out
      end

      def taken_left_out
        left_out, @left_out = @left_out, 0
        left_out
      end
    end
  end
end
