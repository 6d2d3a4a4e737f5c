# frozen_string_literal: true

module Offlock
  module Lock
    # The number of threads that wait for a lock at this moment. Reading never blocks.
    module WaitingThreads
      extend Metric

      class << self
        # @return [Integer] the number of waiting threads, now or when {disable} was called
        def count = Native.waiting

        # Resets the number to zero, and counts from there. {enable} does so, too.
        # @return [Integer] 0
        def reset
          Native.reset_waiting
          0
        end

        private

        def metric = "waiting"
      end
    end
  end
end
