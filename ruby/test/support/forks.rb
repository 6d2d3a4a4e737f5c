# frozen_string_literal: true

# Forks at random moments while two threads run what the scenarios and the cases of zlib do, on inputs that are worked on without
# the lock: forks.rb SECONDS SEED. Each child does one of these, another one each time, and has to come to the right
# result in time; so have the threads of the parent. Prints what goes wrong, and at last how many children there were.
require "English"
require "offlock"
require_relative "scenarios"
require_relative "zlib_cases"

# See above.
class Forks
  # How long a child may take, on a machine that others use.
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
        tell(name, "in the parent") unless right?(name)
      end
    end
  end

  def right?(name)
    @works[name].call == @expected[name]
  rescue StandardError => e
    tell(name, e.full_message(highlight: false))
  end

  # What is told is no success.
  def tell(name, what)
    $stdout.syswrite("#{name}: #{what}\n")
    false
  end

  # Whether it has ended.
  def child(name)
    began, begins = IO.pipe
    pid = fork do
      begins.syswrite("x")
      exit!(right?(name))
    end
    begins.close
    @children += 1
    status = status_of(pid)
    # Ruby itself may hang in a fork (see LockForkTest): such a child never comes to its block.
    return @stuck += 1 if status.nil? && began.read.empty?

    tell(name, "its child #{status || "hangs"}") unless status&.success?
    !status.nil?
  ensure
    began&.close
  end

  # Nil for a child that has to be killed.
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
