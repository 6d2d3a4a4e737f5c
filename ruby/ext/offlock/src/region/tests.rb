# frozen_string_literal: true

# Run by tests.rs inside a Ruby that has the module Native: work that spins, and counts.

require "timeout"

SHORT = 1 << 20
LONG = Native::WORKER_BYTES

def check(what)
  outcome = yield
  raise "#{what}: #{outcome.inspect}" unless outcome == true
end

def raised
  yield
  nil
rescue Exception => e # rubocop:disable Lint/RescueException
  e
end

def timed
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
end

# A thread that has surely begun to work.
def working(bytes, release: :always, time: 20_000)
  before = Native.made
  thread = Thread.new { Native.spin(time, bytes, release) }
  thread.report_on_exception = false
  Thread.pass until Native.made >= before + 2
  thread
end

ENDS = {
  kill: ->(thread) { thread.kill.join },
  raise: ->(thread) { thread.raise("stop") || raised { thread.join } },
}.freeze

check("size decides") { !Native.leaves(99, :auto) && Native.leaves(100, :auto) }
check("the caller decides") { Native.leaves(0, :always) && !Native.leaves(1 << 30, :never) }

check("an unknown release is named") do
  [[:sometimes, ":sometimes"], ["auto", '"auto"'], [nil, "nil"]].all? do |value, shown|
    error = raised { Native.spin(0, 0, value) }
    error.is_a?(ArgumentError) && error.message == "release must be :auto, :always or :never, got #{shown}"
  end
end

%i[always never].each do |release|
  check("a panic becomes an exception") do
    error = raised { Native.panics(release) }
    error.is_a?(Offlock::InternalError) && error.message == "test.spin over 7 bytes panicked: odd 1"
  end
end

[SHORT, LONG].product(%i[always never], ENDS.to_a) do |bytes, release, (name, end_it)|
  check("#{name} ends #{release} over #{bytes}") do
    thread = working(bytes, release:)
    time = timed { end_it.(thread) }
    (!thread.alive? && time < 2) || [time, thread]
  end
end

check("a timeout ends it") do
  [SHORT, LONG].all? do |bytes|
    raised { Timeout.timeout(0.01) { Native.spin(20_000, bytes, :always) } }.is_a?(Timeout::Error)
  end
end

1_000.times do |n|
  thread = working(n.even? ? SHORT : LONG)
  ENDS.values[n / 2 % 2].(thread)
end
check("what was made is dropped") { Native.alive.zero? || Native.alive }

check("a wake-up costs a short run one more start") { (t = working(SHORT, time: 100)).wakeup && t.value == 2 }
check("many wake-ups cost no more") do
  thread = working(SHORT, time: 200)
  50.times { thread.wakeup && sleep(0.001) }
  thread.value == 2
end
check("a wake-up costs a long run nothing") { (t = working(LONG, time: 100)).wakeup && t.value == 1 }

[SHORT, LONG].product(%i[always never]) do |bytes, release|
  check("a trap handler runs at once and does no harm to #{release} over #{bytes}") do
    handled = nil
    old = trap("USR1") { handled = Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    Thread.new { sleep(0.05) && Process.kill("USR1", Process.pid) }
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    starts = Native.spin(800, bytes, release)
    trap("USR1", old)
    (starts <= 2 && handled && handled - started < 0.5) || [starts, handled && (handled - started)]
  end
end

check("a signal that raises ends it") do
  [SHORT, LONG].all? do |bytes|
    Thread.new { sleep(0.05) && Process.kill("INT", Process.pid) }
    time = timed { raised { Native.spin(5_000, bytes, :always) }.is_a?(Interrupt) or raise "no interrupt" }
    time < 1
  end
end

check("deferred interrupts wait") do
  thread = Thread.new do
    Thread.handle_interrupt(RuntimeError => :never) { Thread.current[:starts] = Native.spin(100, SHORT, :always) }
  end
  thread.report_on_exception = false
  sleep(0.02)
  thread.raise("later")
  (raised { thread.join }.message == "later" && thread[:starts] == 2) || thread[:starts]
end

check("a region is a blocking operation") do
  thread = Thread.new do
    Thread.handle_interrupt(RuntimeError => :on_blocking) { Native.spin(20_000, SHORT, :always) }
  end
  thread.report_on_exception = false
  sleep(0.02)
  timed { thread.raise("now") || raised { thread.join } } < 1
end

check("other threads run meanwhile, also when it keeps the lock") do
  %i[always never].all? do |release|
    turns = 0
    other = Thread.new { loop { (turns += 1) && sleep(0.001) } }
    Native.spin(500, SHORT, release)
    other.kill
    turns > (release == :always ? 50 : 1)
  end
end

check("nothing is left") { Native.alive.zero? || Native.alive }
