# frozen_string_literal: true

require "minitest"
require "offlock"

module Offlock
  # For tests: `require "offlock/minitest"`.
  module MinitestAssertions
    # Fails when a thread held its lock for longer in the block; names the thread and how long.
    #
    #   assert_lock_held_at_most(20) { index(documents) }
    #
    # The holds of all threads count. A hold ends when the thread gives the lock up: when it blocks, or after a time slice
    # if another thread wants the lock. A thread that computes alone is asked by nobody, and holds the lock for as long as
    # it computes.
    #
    # @param milliseconds [Numeric] of wall time
    # @param message [String, nil] said first when the assertion fails
    # @return what the block returns
    # @raise [Minitest::Assertion]
    def assert_lock_held_at_most(milliseconds, message = nil)
      result = nil
      summary = Lock.measure { result = yield }
      held = summary.to_h[:threads].map { |thread| [thread[:longest_hold] / 1e6, thread[:name]] }
      excess = held.select { |time, _| time > milliseconds }.sort.reverse
      assert(excess.empty?, message(message) do
        threads = excess.map { |time, name| format("%p held it for %.1f ms", name, time) }
        "The lock was held for more than #{milliseconds} ms: #{threads.join(", ")}"
      end)
      result
    end
  end
end

Minitest::Assertions.include(Offlock::MinitestAssertions)
