# frozen_string_literal: true

module Offlock
  module Lock
    # What the three kinds of live numbers have in common.
    module Metric
      # Starts measuring.
      # @return [Boolean] true
      def enable
        Native.enable(metric, Ractor.current) unless enabled?
        true
      end

      # Stops measuring; the numbers stay.
      # @return [Boolean] true
      def disable
        Native.disable(metric)
        true
      end

      # @return [Boolean] whether it is being measured
      def enabled? = Native.enabled?(metric)
    end
    private_constant :Metric
  end
end
