# frozen_string_literal: true

require "minitest"
require "offlock"

module Offlock
  # Assertions for Minitest: `require "offlock/minitest"`.
  module MinitestAssertions
    # Fails when a thread held the lock for longer than `milliseconds` at once in the block. The message names the threads
    # and their longest holds.
    #
    #   assert_lock_held_at_most(20) { index(documents) }
    #
    # The assertion applies to all threads. A hold ends when the thread releases the lock: when it blocks, or after a time
    # slice if another thread waits for the lock. A thread that computes alone holds the lock for as long as it computes.
    # With `OFFLOCK_LOCK=off` in the environment the block runs without a limit.
    #
    # @param milliseconds [Numeric] the limit, in wall time
    # @param message [String, nil] the first line of the message when the assertion fails
    # @return the value of the block
    # @raise [Minitest::Assertion] if a thread held the lock longer
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
