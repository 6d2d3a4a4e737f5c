# frozen_string_literal: true

module Offlock
  module Lock
    # The time that all threads together have waited for the lock. Reading never blocks.
    module GlobalTimer
      extend Metric

      class << self
        # @return [Integer] nanoseconds waited since the last {reset}, in completed waits
        def monotonic_time = Native.global_numbers.first

        # @return [Integer] how often a thread acquired the lock since the last {reset}
        def acquisitions = Native.global_numbers.last

        # @return [Array<Array(Integer, Integer)>] pairs of a duration in nanoseconds (within 1/32) and the number of
        #   waits of that duration, shortest first
        def histogram = Native.waits(nil)

        # Resets the numbers to zero.
        # @return [Integer] 0
        def reset
          Native.reset_global
          0
        end

        private

        def metric = "global"
      end
    end
  end
end
