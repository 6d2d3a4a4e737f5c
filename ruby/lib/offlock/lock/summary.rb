# frozen_string_literal: true

module Offlock
  module Lock
    # The results of a trace: the times of each thread, which thread made others wait, and findings.
    class Summary
      # @private
      def initialize(text, json)
        @text = text
        @json = json
      end

      # @return [Hash{Symbol => Object}] all numbers, times in nanoseconds; the keys are those of
      #   `offlock export --format json`
      def to_h = Native.parsed(@json)

      # @return [String] {to_h} as JSON
      def to_json(*) = @json

      # @return [String] what `offlock summary` prints
      def to_s = @text

      # @return [String] the length of the recording, and how much there is in it
      def inspect
        numbers = to_h
        length = format("%.3g s", numbers[:length] / 1e9)
        counts = %i[threads locks findings].map { |kind| "#{numbers[kind].size} #{kind}" }
        "#<#{self.class} #{[length, "#{numbers[:events]} events", *counts].join(", ")}>"
      end
    end
  end
end
