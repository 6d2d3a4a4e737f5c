# frozen_string_literal: true

module Offlock
  module Lock
    # How long one thread has waited for the lock. Reading never blocks.
    class LocalTimer
      extend Metric

      class << self
        # @return [LocalTimer] the numbers of a thread
        def for(thread) = new(thread)

        # @return [Integer] nanoseconds the calling thread has waited, in waits that are over
        def monotonic_time = new(Thread.current).monotonic_time

        # Sets the calling thread's numbers back to zero.
        # @return [Integer] 0
        def reset = new(Thread.current).reset

        # Starts measuring. What a thread of the main Ractor has come to is known also when it has ended.
        # @return [Boolean] true
        def enable
          last_numbers.enable if Ractor.current == Ractor.main
          super
        end

        # Stops measuring; the numbers stay.
        # @return [Boolean] true
        def disable
          last_numbers.disable if Ractor.current == Ractor.main
          super
        end

        private

        def metric = "local"

        # They stay with the thread object.
        def last_numbers
          @last_numbers ||= TracePoint.new(:thread_end) do
            Thread.current.thread_variable_set(LAST, Native.local_numbers(Thread.current).freeze)
          end
        end
      end

      # Where an ended thread keeps its numbers.
      LAST = :offlock_lock_numbers
      private_constant :LAST

      # @param thread [Thread]
      def initialize(thread)
        @thread = thread
      end

      # @return [Integer] nanoseconds the thread has waited since the last {#reset}, in waits that are over
      def monotonic_time = numbers[0]

      # @return [Integer] how often the thread got the lock since the last {#reset}
      def acquisitions = numbers[1]

      # @return [Integer] how often the thread gave up the lock since the last {#reset}
      def releases = numbers[2]

      # @return [Array<Array(Integer, Integer)>] as {GlobalTimer.histogram}
      def histogram = Native.waits(@thread)

      # Sets the thread's numbers back to zero.
      # @return [Integer] 0
      def reset
        Native.reset_local(@thread)
        0
      end

      private

      def numbers
        (@thread.thread_variable_get(LAST) unless @thread.alive?) || Native.local_numbers(@thread)
      end
    end
  end
end
