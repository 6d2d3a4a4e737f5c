# frozen_string_literal: true

# A small fiber scheduler: timers, blocking and waking up, and blocking operations on separate threads.
class Scheduler
  # The number of operations that the scheduler has run.
  attr_reader :operations

  def initialize(takes_operations: true)
    @wakeups = Thread::Queue.new
    @timers = {}
    @fibers = {} # Ruby collects a waiting fiber without references.
    @operations = 0
    singleton_class.undef_method(:blocking_operation_wait) unless takes_operations
  end

  # Runs fibers until all are finished. Ruby calls it at the end of the thread.
  def close
    until @fibers.empty?
      fiber = @wakeups.pop(timeout: until_next_timer)
      fiber.resume(true) if fiber&.alive?
      fire_timers
    end
  end

  def fiber(&block)
    fiber = Fiber.new(blocking: false) do
      block.call
    ensure
      @fibers.delete(fiber)
    end
    @fibers[fiber] = true
    fiber.tap(&:resume)
  end

  def block(_blocker, timeout = nil)
    with_timer(timeout, -> { _1.resume(false) }) { Fiber.yield }
  end

  def unblock(_blocker, fiber)
    @wakeups.push(fiber)
  end

  def kernel_sleep(duration = nil)
    block(:sleep, duration)
  end

  def timeout_after(duration, error, message, &block)
    with_timer(duration, -> { _1.raise(error, message) if _1.alive? }) { block.call(duration) }
  end

  def io_wait(io, events, timeout)
    Thread.new { io.wait(events, timeout) }.value
  end

  def fiber_interrupt(fiber, exception)
    fiber.raise(exception)
  end

  def blocking_operation_wait(work)
    @operations += 1
    Thread.new { work.call }.join
  end

  private

  def with_timer(duration, action)
    fiber = Fiber.current
    timer = Object.new
    @timers[timer] = [now + duration, fiber, action] if duration
    yield
  ensure
    @timers.delete(timer)
  end

  def fire_timers
    due = @timers.select { |_, (time, _, _)| time <= now }
    due.each do |timer, (_, fiber, action)|
      @timers.delete(timer)
      action.call(fiber)
    end
  end

  def until_next_timer
    soonest = @timers.each_value.map(&:first).min
    soonest && [soonest - now, 0].max
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
