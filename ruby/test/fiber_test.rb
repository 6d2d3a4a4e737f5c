# frozen_string_literal: true

require "timeout"
require_relative "support/scheduler"
require_relative "test_helper"

# Calls under a fiber scheduler, which may move the work to another thread.
class FiberTest < Minitest::Test
  include Texts

  # Since 3.4 Ruby asks schedulers whether they run blocking operations.
  TAKES_OPERATIONS = RUBY_VERSION >= "3.4"

  # Runs the block in a fiber of a thread with a scheduler; returns its value and the scheduler.
  def scheduled(scheduler = Scheduler.new)
    value = nil
    Thread.new do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { value = yield }
    end.join
    [value, scheduler]
  end

  def test_it_works
    text = text_of(300_000)
    tokens, scheduler = scheduled { o200k.encode(text, release: :always) }
    assert_equal o200k.encode(text), tokens
    assert_equal TAKES_OPERATIONS ? 1 : 0, scheduler.operations
  end

  def test_work_under_the_lock_is_not_moved
    _, scheduler = scheduled { o200k.encode("short") }
    assert_equal 0, scheduler.operations
  end

  def test_a_scheduler_that_takes_no_operations
    text = text_of(300_000)
    tokens, = scheduled(Scheduler.new(takes_operations: false)) { o200k.encode(text, release: :always) }
    assert_equal o200k.encode(text), tokens
  end

  def test_other_fibers_run_meanwhile
    skip "schedulers take no operations before Ruby 3.4" unless TAKES_OPERATIONS
    turns = 0
    scheduled do
      ticker = Fiber.schedule { loop { (turns += 1) && sleep(0.001) } }
      o200k.encode(text_of(30_000_000), release: :always)
      ticker.raise(StopIteration)
    end
    assert_operator turns, :>, 20
  end

  def test_many_fibers_at_once
    texts = Array.new(20) { |n| text_of(20_000 * n) }
    counts = []
    scheduled { texts.each { |text| Fiber.schedule { counts << o200k.count(text, release: :always) } } }
    assert_equal texts.map { |text| o200k.count(text) }.sort, counts.sort
  end

  def test_errors_reach_the_fiber
    error, = scheduled do
      o200k.encode("#{text_of(300_000)}\xFF", release: :always)
    rescue EncodingError => e
      e
    end
    assert_match(/0xFF at byte/, error.message)
  end

  def test_a_fiber_that_times_out
    skip "schedulers take no operations before Ruby 3.4" unless TAKES_OPERATIONS
    20.times do
      outcome, = scheduled do
        Timeout.timeout(0.01) { o200k.encode(endless, release: :always) }
      rescue Timeout::Error
        o200k.encode("still alive")
      end
      assert_equal o200k.encode("still alive"), outcome
    end
  end

  # Starts the work after the call has ended.
  class Late < Scheduler
    attr_reader :late

    def blocking_operation_wait(work)
      @late = work
      raise "no time"
    end
  end

  def test_work_that_is_started_too_late_does_nothing
    skip "schedulers take no operations before Ruby 3.4" unless TAKES_OPERATIONS
    error, scheduler = scheduled(Late.new) do
      o200k.encode(text_of(300_000), release: :always)
    rescue RuntimeError => e
      e
    end
    assert_equal "no time", error.message
    GC.start
    scheduler.late.call
  end

  # Claims to run operations, but does not.
  class Idle < Scheduler
    def blocking_operation_wait(_work) = nil
  end

  def test_a_scheduler_that_does_nothing
    text = text_of(300_000)
    tokens, = scheduled(Idle.new) { o200k.encode(text, release: :always) }
    assert_equal o200k.encode(text), tokens
  end

  # Kills the thread that runs the work.
  class Killer < Scheduler
    def blocking_operation_wait(work)
      thread = Thread.new { work.call }
      sleep(0.01)
      thread.kill.join
    end
  end

  def test_a_worker_that_is_killed
    text = text_of(3_000_000)
    tokens, = scheduled(Killer.new) { o200k.encode(text, release: :always) }
    assert_equal o200k.encode(text), tokens
  end
end
