# frozen_string_literal: true

require "test_helper"
require "offlock/minitest"

# Tests the assertion for Minitest.
class MinitestAssertionsTest < Minitest::Test
  def compute(seconds)
    finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
  end

  def test_a_block_that_gives_the_lock_up_passes
    value = assert_lock_held_at_most(200) { sleep(0.3) && :result }
    assert_equal :result, value
    assert_equal 2, assertions
  end

  def test_who_held_the_lock_too_long_is_named
    failure = assert_raises(Minitest::Assertion) do
      assert_lock_held_at_most(50, "indexing") do
        Thread.new { (Thread.current.name = "indexer") && compute(0.3) }.join
      end
    end
    assert_match(/\Aindexing\.\nThe lock was held for more than 50 ms: "indexer" held it for \d+\.\d ms/, failure.message)
  end

  def test_the_blocks_own_error_comes_through
    assert_raises(KeyError) { assert_lock_held_at_most(1000) { {}.fetch(1) } }
  end
end
