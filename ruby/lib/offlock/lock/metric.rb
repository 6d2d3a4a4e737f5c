# frozen_string_literal: true

module Offlock
  module Lock
    # The common methods of the three kinds of live numbers.
    module Metric
      # Starts measuring.
      # @return [Boolean] whether measuring is enabled: true, or false with `OFFLOCK_LOCK=off` in the environment
      def enable
        Native.enable(metric, Ractor.current) unless enabled?
        enabled?
      end

      # Stops measuring and keeps the numbers.
      # @return [Boolean] true
      def disable
        Native.disable(metric)
        true
      end

      # @return [Boolean] whether measuring is enabled
      def enabled? = Native.enabled?(metric)
    end
    private_constant :Metric
  end
end
