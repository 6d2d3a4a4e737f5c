# frozen_string_literal: true

module Offlock
  module Lock
    # How long all threads together have waited for the lock. Reading never blocks.
    module GlobalTimer
      extend Metric

      class << self
        # @return [Integer] nanoseconds waited since the last {reset}, in waits that are over
        def monotonic_time = Native.global_numbers.first

        # @return [Integer] how often a thread got the lock since the last {reset}
        def acquisitions = Native.global_numbers.last

        # @return [Array<Array(Integer, Integer)>] pairs of a duration in ns (at most 1/32 off) and how many waits
        #   took that long, shortest first
        def histogram = Native.waits(nil)

        # Sets the numbers back to zero.
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
