# frozen_string_literal: true

module Offlock
  module Lock
    # How many threads wait for a lock at this moment. Reading never blocks.
    module WaitingThreads
      extend Metric

      class << self
        # @return [Integer] the number of threads that wait, or that waited when {disable} was called
        def count = Native.waiting

        # Sets the number back to zero, and counts from there. {enable} does that, too.
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
