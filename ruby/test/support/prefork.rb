# frozen_string_literal: true

# Forks children from a process with four busy threads until its time is up. Each child does one kind of work, and exits in one
# of several ways. A child that has not ended after a long time is considered hung.
#
#   ruby prefork.rb SECONDS SEED
#
# Prints a line for each child: its process id, its work, and how it ended.
require "offlock" unless defined?(Offlock)

seconds = Float(ARGV.fetch(0))
random = Random.new(Integer(ARGV.fetch(1)))
PATIENCE = 30

def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def compute(seconds)
  finish = clock + seconds
  nil while clock < finish
end

queue = Thread::Queue.new
reader, writer = IO.pipe
text = "some words and 日本語 " * 200
encoding = Offlock::Tiktoken.get_encoding(:r50k_base)
# Threads that acquire and release the lock all the time, so that forks happen at every stage of it.
[
  -> { compute(0.0002) || sleep(0.0001) },
  -> { sleep(0.0001) },
  -> { queue << 1 && queue.pop && Thread.pass },
  -> { writer.write("x") && reader.read(1) && encoding.encode(text, release: :always) }
].each { |work| Thread.new { loop { work.call } } }

WAYS = {
  leave: -> {},
  leave_at_once: -> { exit!(0) },
  threads: -> { Array.new(3) { Thread.new { compute(0.003) } }.each(&:join) },
  encode: -> { exit!(Offlock::Tiktoken.get_encoding(:r50k_base).encode("hello") == [31_373] ? 0 : 1) },
  measure: -> { exit(Offlock::Lock.measure { compute(0.002) }.to_h[:threads].empty? ? 1 : 0) },
  numbers: -> { Offlock::Lock::GlobalTimer.enable && compute(0.002) && Offlock::Lock::GlobalTimer.disable },
  collect: -> { GC.start },
  fork: -> { Process.wait(fork { compute(0.001) }) },
  run: -> { system("true") },
  signal: -> { Process.kill(:TERM, Process.pid) && sleep }
}.freeze

# @return [Process::Status, nil] nil if the child hangs
def ended(pid)
  finish = clock + PATIENCE
  while clock < finish
    return $CHILD_STATUS if Process.wait(pid, Process::WNOHANG)

    sleep(0.001)
  end
end

require "English"
$stdout.sync = true
deadline = clock + seconds
while clock < deadline
  children = Array.new(random.rand(1..3)) do
    way = WAYS.keys.sample(random: random)
    sleep(random.rand * 0.003)
    [fork { trap(:TERM, "SYSTEM_DEFAULT") && WAYS[way].call }, way]
  end
  children.each do |pid, way|
    status = ended(pid)
    Process.kill(:KILL, pid) unless status
    expected = way == :signal ? status&.termsig == 15 : status&.exitstatus == 0 # rubocop:disable Style/NumericPredicate
    puts "#{pid} #{way} #{expected ? :ended : status || :hung}"
  end
end
