# frozen_string_literal: true

# Forks at random moments while two threads run the scenarios and the cases of zlib, on inputs that are processed without the
# lock: forks.rb SECONDS SEED. Each child runs one of these, another one each time, and must return the right result in time.
# So must the threads of the parent. Prints the failures, and at the end the number of children.
require "English"
require "offlock"
require_relative "scenarios"
require_relative "zlib_cases"

# Runs the children; see above.
class Forks
  # The time limit of a child in seconds, on a busy machine.
  PATIENCE = 20
  # Items of a scenario, and lines of text for zlib: some tens of kilobytes.
  COUNT = 150
  LINES = 1_500

  def self.works
    scenarios = Scenarios::TABLE.transform_values { |scenario| -> { scenario.call(COUNT) } }
    cases = ZlibCases::ALL.each_key.with_index.to_h do |name, index|
      ["zlib #{name}", -> { ZlibCases.run(index, data: ZlibCases.data(LINES)) }]
    end
    scenarios.merge(cases)
  end

  def initialize(seconds, seed)
    @deadline = clock + seconds
    @random = Random.new(seed)
    @works = self.class.works
    @expected = @works.transform_values(&:call)
    @going = true
    @children = 0
    @stuck = 0
  end

  def run
    threads = Array.new(2) { work_on(Random.new(@random.rand(1 << 30))) }
    turns = @works.keys.shuffle(random: @random).cycle
    while clock < @deadline
      sleep(@random.rand * 0.01)
      break unless child(turns.next)
    end
    @going = false
    threads.each(&:join)
    puts "#{@children} children, #{@stuck} stuck in Ruby's own fork"
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def work_on(random)
    Thread.new do
      while @going
        name = @works.keys.sample(random: random)
        report(name, "in the parent") unless right?(name)
      end
    end
  end

  def right?(name)
    @works[name].call == @expected[name]
  rescue StandardError => e
    report(name, e.full_message(highlight: false))
  end

  # Prints a failure and returns false.
  def report(name, what)
    $stdout.syswrite("#{name}: #{what}\n")
    false
  end

  # Forks a child; returns whether it has ended.
  def child(name)
    began, begins = IO.pipe
    pid = fork do
      begins.syswrite("x")
      exit!(right?(name))
    end
    begins.close
    @children += 1
    status = status_of(pid)
    # Ruby itself may hang in a fork (see LockForkTest); such a child never reaches its block.
    return @stuck += 1 if status.nil? && began.read.empty?

    report(name, "its child #{status || "hangs"}") unless status&.success?
    !status.nil?
  ensure
    began&.close
  end

  # Returns nil for a child that has to be killed.
  def status_of(pid)
    finish = clock + PATIENCE
    while clock < finish
      return $CHILD_STATUS if Process.wait(pid, Process::WNOHANG)

      sleep(0.001)
    end
    Process.kill(:KILL, pid)
    Process.wait(pid)
    nil
  end
end

Forks.new(Float(ARGV.fetch(0)), Integer(ARGV.fetch(1))).run
