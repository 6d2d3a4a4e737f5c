# frozen_string_literal: true

module Offlock
  module Lock
    # The time that one thread has waited for the lock. Reading never blocks.
    class LocalTimer
      extend Metric

      class << self
        # @param thread [Thread]
        # @return [LocalTimer] the numbers of the thread
        def for(thread) = new(thread)

        # @return [Integer] nanoseconds that the calling thread has waited, in completed waits
        def monotonic_time = new(Thread.current).monotonic_time

        # Resets the calling thread's numbers to zero.
        # @return [Integer] 0
        def reset = new(Thread.current).reset

        # Starts measuring. The numbers of a thread of the main Ractor remain available after its end.
        # @return [Boolean] whether measuring is enabled: true, or false with `OFFLOCK_LOCK=off` in the environment
        def enable
          super.tap { |enabled| last_numbers.enable if enabled && Ractor.current == Ractor.main }
        end

        # Stops measuring and keeps the numbers.
        # @return [Boolean] true
        def disable
          @last_numbers.disable if Ractor.current == Ractor.main && @last_numbers
          super
        end

        private

        def metric = "local"

        # Stores the numbers of an ended thread in the thread object.
        def last_numbers
          @last_numbers ||= TracePoint.new(:thread_end) do
            Thread.current.thread_variable_set(LAST, Native.local_numbers(Thread.current).freeze)
          end
        end
      end

      # The thread variable with the numbers of an ended thread.
      LAST = :offlock_lock_numbers
      private_constant :LAST

      # @param thread [Thread]
      def initialize(thread)
        @thread = thread
      end

      # @return [Integer] nanoseconds that the thread has waited since the last {#reset}, in completed waits
      def monotonic_time = numbers[0]

      # @return [Integer] how often the thread acquired the lock since the last {#reset}
      def acquisitions = numbers[1]

      # @return [Integer] how often the thread released the lock since the last {#reset}
      def releases = numbers[2]

      # @return [Array<Array(Integer, Integer)>] like {GlobalTimer.histogram}
      def histogram = Native.waits(@thread)

      # Resets the thread's numbers to zero.
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
