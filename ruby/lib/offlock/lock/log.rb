# frozen_string_literal: true

module Offlock
  module Lock
    # Lines for the logger +@logger+ of a watch, or for the standard error stream without one.
    # @private
    module Log
      private

      # A logger that fails does not end the watch.
      def log(line)
        @logger ? @logger.warn(line) : warn("offlock: #{line}")
      rescue StandardError => e
        warn "offlock: #{line} (the logger failed: #{e.message})"
      end
    end
    private_constant :Log
  end
end
