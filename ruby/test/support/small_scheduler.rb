# frozen_string_literal: true

# A small fiber scheduler for tests: sleeping, blocking and waiting for input, in the thread's own fiber.
class SmallScheduler
  def initialize
    @ready, @sleeping, @reading, @blocked = Thread::Queue.new, {}, {}, 0
    @wakeups, @wake = IO.pipe
  end

  def run
    until @ready.empty? && @sleeping.empty? && @reading.empty? && @blocked.zero?
      wait
      @ready.pop.then { |fiber| fiber.resume if fiber.alive? } until @ready.empty?
    end
  end

  def close = run

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)

  def kernel_sleep(duration = nil)
    block(:sleep, duration)
  end

  def block(_blocker, timeout = nil)
    @sleeping[Fiber.current] = clock + timeout if timeout
    @blocked += 1 unless timeout
    Fiber.yield
  ensure
    @blocked -= 1 unless timeout
    @sleeping.delete(Fiber.current)
  end

  def unblock(_blocker, fiber)
    @ready << fiber
    @wake.write_nonblock(".", exception: false)
  end

  # Ruby 4.0's, for a fiber that waits for a file that another one closes.
  def fiber_interrupt(fiber, exception)
    unblock(nil, Interruption.new(fiber, exception))
  end

  Interruption = Struct.new(:fiber, :exception) do
    def alive? = fiber.alive?
    def resume = fiber.raise(exception)
  end

  def io_wait(io, events, _timeout)
    @reading[io] = Fiber.current
    Fiber.yield
    events
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def wait
    pause = @ready.empty? ? @sleeping.values.min&.-(clock)&.clamp(0..) : 0
    readable, = IO.select([@wakeups, *@reading.keys], nil, nil, pause)
    (readable || []).each do |io|
      io == @wakeups ? @wakeups.read_nonblock(64, exception: false) : @ready << @reading.delete(io)
    end
    due, = @sleeping.partition { |_, time| time <= clock }
    due.each { |fiber, _| @ready << fiber if @sleeping.delete(fiber) }
  end
end
