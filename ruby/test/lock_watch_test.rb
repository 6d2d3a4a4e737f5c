# frozen_string_literal: true

require "logger"
require "stringio"

require_relative "test_helper"

# `Offlock::Lock.watch_lock` logs holds and waits that are too long, but not too often.
class LockWatchTest < Minitest::Test
  # A logger that keeps what it gets.
  class Lines
    attr_reader :lines

    def initialize
      @lines = []
    end

    def warn(line) = @lines << line
  end

  UNSORTED = Array.new(400_000) { |number| ((number * 7_919) % 400_009).to_s }.freeze

  def setup
    @logger = Lines.new
  end

  # Keeps the lock for about 0.2 s, while another thread wants it.
  def hold(times = 1)
    waiter = Thread.new { loop { sleep 0.001 } }
    waiter.name = "waiter"
    times.times do
      sleep 0.02
      UNSORTED.sort # keeps the lock
    end
  ensure
    waiter.kill.join
  end

  def eventually
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
    sleep 0.01 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  end

  def test_a_long_hold_is_logged_with_thread_time_and_line
    watch = Offlock::Lock.watch_lock(hold: 0.05, logger: @logger)
    assert_predicate watch, :running?
    hold
    eventually { @logger.lines.any? }
    watch.stop
    line = @logger.lines.fetch(0)
    assert_match(/ the lock for \d+ ms while "waiter" waited/, line)
    assert_operator watch.number, :>=, 1
    assert_equal "#<Offlock::Lock::LockWatch stopped, #{watch.number} too long>", watch.inspect
  end

  def test_a_long_wait_is_logged_with_the_line_of_the_holder
    watch = Offlock::Lock.watch_lock(hold: nil, wait: 0.05, logger: @logger)
    hold
    eventually { @logger.lines.any? }
    watch.stop
    assert_match(/\A"waiter" (?:has )?waited for the lock for \d+ ms, "main" held it/, @logger.lines.fetch(0))
  end

  def test_what_is_left_out_within_the_interval_is_counted
    watch = Offlock::Lock.watch_lock(interval: 0.2, logger: @logger)
    %w[first second third].each { |text| watch.send(:found, text) }
    sleep 0.25
    %w[fourth fifth].each { |text| watch.send(:found, text) }
    2.times { watch.stop }
    assert_equal ["first", "fourth (2 more left out before)",
                  "1 more left out since the last line"], @logger.lines
    assert_equal 5, watch.number
  end

  def test_lines_go_to_a_logger_or_to_standard_error
    output = StringIO.new
    watch = Offlock::Lock.watch_lock(logger: Logger.new(output))
    watch.send(:found, "too long")
    watch.stop
    assert_includes output.string, "WARN -- : too long\n"
    watch = Offlock::Lock.watch_lock
    _, errors = capture_io { watch.send(:found, "too long") }
    watch.stop
    assert_equal "offlock: too long\n", errors
  end

  def test_a_logger_that_fails_does_not_end_the_watch
    broken = Object.new
    def broken.warn(_line) = raise("no space")
    watch = Offlock::Lock.watch_lock(logger: broken)
    _, errors = capture_io { watch.send(:found, "too long") }
    watch.stop
    assert_equal "offlock: too long (the logger failed: no space)\n", errors
  end

  def test_short_holds_are_not_logged
    watch = Offlock::Lock.watch_lock(hold: 5, wait: 5, logger: @logger)
    hold
    sleep 0.05
    watch.stop
    assert_equal [0, []], [watch.number, @logger.lines]
  end

  def test_what_makes_no_sense_is_refused
    [{ hold: -1 }, { wait: Float::NAN }, { interval: -1 }, { hold: nil }].each do |options|
      assert_raises(ArgumentError) { Offlock::Lock.watch_lock(**options) }
    end
  end

  def test_a_forked_child_watches_too
    watch = Offlock::Lock.watch_lock(hold: 0.05, logger: @logger)
    child = fork do
      hold
      eventually { watch.number.positive? }
      exit!(watch.running? && watch.number.positive?)
    end
    Process.wait(child)
    watch.stop
    assert_predicate $?, :success?
  end
end
