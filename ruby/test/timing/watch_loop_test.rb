# frozen_string_literal: true

require_relative "../test_helper"
require "logger"
require "stringio"
require "support/small_scheduler"

# Watches of the loops of fiber schedulers: each cause of lateness, provoked by construction.
class WatchLoopTest < Minitest::Test
  include Texts

  THRESHOLD = 0.05
  PARTS = %i[computed_ns blocked_ns gc_ns lock_ns not_run_ns].freeze

  # What is told of the loop while the block runs in one of its fibers.
  def watched(threshold: THRESHOLD, &work)
    events, watch = [], nil
    thread = Thread.new do
      Fiber.set_scheduler(SmallScheduler.new)
      Fiber.schedule do
        watch = Offlock::Lock.watch_loop(threshold:, logger: Logger.new(nil)) { |event| events << event }
        sleep 0.03
        work.call
        sleep 0.03
        watch.stop
      end
    end
    thread.name = "the loop"
    thread.join
    assert_equal [events.size, events.sum(&:nanoseconds)], [watch.number, watch.nanoseconds]
    events.each do |event|
      assert_equal event.nanoseconds, PARTS.sum { |part| event.public_send(part) }
      assert_operator event.nanoseconds, :>, threshold * 1e9
      assert_equal "the loop", event.thread
    end
    events
  end

  # The only event of which that is the largest part, apart from what a busy machine adds.
  def the(events, cause)
    found = events.select do |event|
      part = event.public_send(:"#{cause}_ns")
      part > THRESHOLD * 1e9 && (PARTS - [:"#{cause}_ns", :not_run_ns]).all? { |other| part > event.public_send(other) }
    end
    assert_equal 1, found.size, events.map(&:to_s).inspect
    found.first
  end

  def compute(seconds = 0.2)
    finish = cpu + seconds
    nil while cpu < finish
  end

  def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  def test_a_fiber_that_computes_is_named_with_its_line
    event = the(watched { Fiber.schedule { compute } }, "computed")
    assert_equal %w[callback computed], [event.kind, event.cause] if event.cause == "computed"
    assert event.stack.any? { |function, file, _| function.end_with?("compute") && file == __FILE__ }, event.to_s
    assert_equal __FILE__, event.file
    assert_match(/\Athe event loop of 'the loop' was late: .*computed \d+\.\d ms/, event.text)
    assert_predicate event, :exact?
  end

  Task = Struct.new(:annotation)

  def test_a_task_of_the_gem_async_is_named
    late = watched do
      Fiber.schedule do
        Fiber.current.define_singleton_method(:async_task) { Task.new("orders") }
        compute
      end
    end
    event = the(late, "computed")
    assert_equal "orders", event.task
    assert_includes event.text, " of task 'orders'"
  end

  def test_a_call_that_the_scheduler_does_not_see_is_blocked
    event = the(watched { Fiber.schedule { Fiber.blocking { sleep 0.2 } } }, "blocked")
    assert_equal "blocked", event.cause
    assert_operator event.blocked_ns, :>, 150_000_000
    assert event.stack.any? { |function, _, _| function.end_with?("sleep") }, event.to_s
  end

  def test_a_collection_of_garbage_is_told
    kept = Array.new(400_000) { Object.new }
    event = the(watched { Fiber.schedule { 12.times { GC.start } } }, "gc")
    assert_equal "gc", event.cause
    assert_equal 400_000, kept.size
  end

  def test_another_thread_that_holds_the_lock_is_named
    keeper = nil
    events = watched do
      keeper = Thread.new { compute(0.5) }
      keeper.name = "keeper"
      5.times { sleep 0.01 }
    end
    keeper.join
    late = events.select { |event| event.cause == "lock" }
    refute_empty late, events.map(&:to_s).inspect
    assert_includes late.map(&:holder), "keeper"
    assert late.any? { |event| event.holder_stack.any? { |function, _, _| function.end_with?("compute") } }
    assert_includes late.map(&:kind), "wakeup"
    assert late.any? { |event| event.text.include?("(held by 'keeper'") }
  end

  def test_a_round_of_short_fibers_is_an_iteration
    events = watched { 20.times { Fiber.schedule { compute(0.01) } } }
    event = the(events, "computed")
    assert_includes %w[iteration callback], event.kind
    assert_operator event.computed_ns, :>, 150_000_000
  end

  def test_idle_loops_and_short_fibers_are_not_late
    events = watched do
      sleep 0.3
      100.times { Fiber.schedule { sleep 0.001 } }
      reader, writer = IO.pipe
      Thread.new { sleep 0.2 and writer << "x" }
      reader.readpartial(1)
    end
    assert_empty events.reject { |event| %w[not_run lock].include?(event.cause) }.map(&:to_s)
  end

  def test_a_stopped_process_was_not_run
    program = <<~'RUBY'
      require "support/small_scheduler"
      Fiber.set_scheduler(SmallScheduler.new)
      Fiber.schedule do
        watch = Offlock::Lock.watch_loop { |event| puts event.cause, event.not_run_ns > 100_000_000 }
        sleep 0.1
        spawn("sleep 0.05; kill -STOP #{Process.pid}; sleep 0.4; kill -CONT #{Process.pid}")
        Fiber.blocking { sleep 0.15 }
        sleep 0.1
        watch.stop
      end
    RUBY
    output, = run_ruby(program)
    assert_match(/^not_run\ntrue$/, output)
  end

  def test_a_block_that_raises_and_a_logger_are_called
    log = StringIO.new
    Thread.new do
      Fiber.set_scheduler(SmallScheduler.new)
      Fiber.schedule do
        watch = Offlock::Lock.watch_loop(logger: Logger.new(log)) { raise "no" }
        sleep 0.02
        Fiber.blocking { sleep 0.12 }
        sleep 0.02
        watch.stop
        watch.stop
        refute_predicate watch, :running?
        assert_match(/\A#<Offlock::Lock::LoopWatch stopped, [1-9]\d* late>\z/, watch.inspect)
      end
    end.join
    assert_match(/WARN -- : the event loop of '.*' was late: .* blocked/, log.string)
    assert_match(/on_late raised RuntimeError: no/, log.string)
  end

  def test_what_cannot_be_watched_is_refused
    error = assert_raises(RuntimeError) { Offlock::Lock.watch_loop }
    assert_includes error.message, "no fiber scheduler"
    Thread.new do
      Fiber.set_scheduler(SmallScheduler.new)
      [0, -1, 0.0001, Float::NAN, Float::INFINITY, "1"].each do |wrong|
        assert_raises(ArgumentError) { Offlock::Lock.watch_loop(threshold: wrong) }
      end
      watch = Offlock::Lock.watch_loop
      error = assert_raises(RuntimeError) { Offlock::Lock.watch_loop }
      assert_includes error.message, "watched already"
      watch.stop
      Offlock::Lock.watch_loop.stop
    end.join
    refute_predicate Offlock::Lock::LocalTimer, :enabled?
  end

  def test_a_trap_handler_may_stop_the_watch
    program = <<~'RUBY'
      require "support/small_scheduler"
      Fiber.set_scheduler(SmallScheduler.new)
      Fiber.schedule do
        watch = Offlock::Lock.watch_loop
        trap(:USR1) { watch.stop }
        Process.kill(:USR1, Process.pid)
        sleep 0.2
        puts watch.running?, Offlock::Lock::LocalTimer.enabled?
      end
    RUBY
    output, = run_ruby(program)
    assert_equal "false\nfalse\n", output.lines.grep_v(/offlock:/).join
  end

  def test_a_forked_child_watches_nothing
    program = <<~'RUBY'
      require "support/small_scheduler"
      Fiber.set_scheduler(SmallScheduler.new)
      Fiber.schedule do
        watch = Offlock::Lock.watch_loop
        sleep 0.02
        child = fork do
          Fiber.blocking { sleep 0.1 }
          exit!(!watch.running? && watch.number.zero? && ObjectSpace.each_object(TracePoint).none?(&:enabled?))
        end
        Process.wait(child)
        puts $?.success?, watch.running?
        watch.stop
      end
    RUBY
    output, = run_ruby(program)
    assert_equal "true\ntrue\n", output.lines.grep_v(/offlock:/).join
  end
end
