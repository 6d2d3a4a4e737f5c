# frozen_string_literal: true

# What the programs have in common: how long they run, and work that computes.
module Work
  SECONDS = Float(ENV.fetch("SECONDS", "3"))

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  def self.processor_time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  FINISH = now + SECONDS

  module_function

  def goes_on? = Work.now < FINISH

  # Holds the lock, but for the time slices of others, until the thread has used this much processor time.
  def compute(seconds)
    finish = Work.processor_time + seconds
    50.times { |number| number * number } while Work.processor_time < finish
  end

  # Runs each block in a thread with its name.
  def run(bodies)
    bodies.map { |name, body| Thread.new { (Thread.current.name = name) && body.call } }.each(&:join)
  end

  # Runs the block in as many threads, named "name 1" and so on.
  def run_pool(name, size, &body) = run((1..size).to_h { |number| ["#{name} #{number}", body] })
end

include Work # rubocop:disable Style/MixinUsage
