# frozen_string_literal: true

# Measures the overhead of tracing the lock in Ruby: script/ruby bench/lock/ruby_bench.rb [--json FILE]
#
# - Each workload runs untraced, with the three metrics enabled, and with a trace into a file, without stacks and with
#   them, in one process and in turn.
#   A ratio is the median over the rounds of a time as a multiple of the untraced time of the same round.
# - gvltools and gvl-tracing are measured as well, where they can be loaded.
# - Each workload runs in processes that have and have not loaded offlock.
#
# Two workloads consist of lock switches only: two pairs of threads pass a token. The third has few: four threads compute.

require "json"
require "rbconfig"
require "tempfile"

# The workloads. Each takes a number of rounds.
module Workloads
  module_function

  def all = { queue: method(:queues), pipe: method(:pipes), computing: method(:computing) }

  def queues(rounds)
    pairs { [Thread::Queue.new, Thread::Queue.new] }
      .flat_map { |there, back| [player(rounds, there, back), player(rounds, back, there).tap { there << 0 }] }
      .each(&:join)
  end

  def player(rounds, from, to)
    Thread.new { rounds.times { to << from.pop } }
  end

  def pipes(rounds)
    pairs { [IO.pipe, IO.pipe] }.map { |there, back| pipe_pair(rounds, there, back) }.flatten.each(&:join)
  end

  def pipe_pair(rounds, there, back)
    threads = [[there[0], back[1]], [back[0], there[1]]].map do |from, to|
      Thread.new { rounds.times { to.syswrite(from.sysread(1)) } }
    end
    there[1].syswrite("x")
    threads
  end

  def pairs(&) = Array.new(2, &)

  def computing(rounds)
    Array.new(4) { Thread.new { rounds.times { fibonacci(12) } } }.each(&:join)
  end

  def fibonacci(size) = size < 2 ? size : fibonacci(size - 1) + fibonacci(size - 2)
end

if ARGV.first == "--alone"
  workload = Workloads.all.fetch(ARGV[1].to_sym)
  workload.(5_000)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  workload.(5_000)
  puts Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  exit
end

require_relative "../bench"
require "offlock"

# The ways to trace. Each runs a workload.
class Watch
  METRICS = [Offlock::Lock::GlobalTimer, Offlock::Lock::LocalTimer, Offlock::Lock::WaitingThreads].freeze

  class << self
    # @return [Hash{Symbol => Proc}] each is called with a workload
    def all
      { off: :call.to_proc, metrics: method(:metrics), tracing: tracing(nil), stacks: tracing(0.001), **peers }
    end

    # @return [Array<Offlock::Lock::Stats>] of the traces so far
    def stats = @stats ||= []

    private

    def metrics(workload)
      METRICS.each(&:enable)
      workload.call
    ensure
      METRICS.each(&:disable)
    end

    def tracing(stacks)
      lambda do |workload|
        trace = Offlock::Lock.trace(path("offlock"), stacks: stacks) { |running| workload.call && running }
        @stats << trace.stop
      end
    end

    def peers
      { "gvltools" => :gvltools, "gvl-tracing" => :gvl_tracing }.filter_map do |name, way|
        require name
        [name.to_sym, method(way)]
      rescue LoadError
        nil
      end.to_h
    end

    def gvltools(workload)
      timers = [::GVLTools::GlobalTimer, ::GVLTools::LocalTimer, ::GVLTools::WaitingThreads]
      timers.each(&:enable)
      workload.call
    ensure
      timers.each(&:disable)
    end

    def gvl_tracing(workload)
      ::GvlTracing.start(path("json")) { workload.call }
    end

    def path(extension) = File.join(Dir.tmpdir, "offlock-bench-#{Process.pid}.#{extension}")
  end

  at_exit { Dir[File.join(Dir.tmpdir, "offlock-bench-#{Process.pid}.*")].each { |file| File.delete(file) } }
end

# The overhead of every way to trace for one workload.
class Overhead
  ROUNDS = 31
  # Seconds of one measurement, much longer than start and stop of a trace.
  ENOUGH = 0.2
  # Runs per way and round.
  PROCESSES = 5

  def initialize(name, workload)
    @name = name
    rounds = enough_rounds(workload)
    @workload = -> { workload.(rounds) }
  end

  def run
    Watch.stats.clear
    ways = Watch.all.transform_values { |watch| ->(_) { watch.call(@workload) } }
    ways.each_value { |way| way.call(0) }
    times = Bench.alternate(ways, ROUNDS)
    { seconds: Bench.median(times[:off]).round(4), ratio: ratios(times), **sizes, loaded: }
  end

  private

  def enough_rounds(workload)
    rounds = 100
    rounds *= 2 until (taken = Bench.seconds { workload.(rounds) }) >= ENOUGH / 4
    (rounds * ENOUGH / taken).round
  end

  def ratios(times)
    times.except(:off).transform_values do |values|
      Bench.median(values.zip(times[:off]).map { |value, off| value / off }).round(3)
    end
  end

  def sizes
    events = Watch.stats.sum(&:events)
    { events: Watch.stats.last.events, lost: Watch.stats.sum(&:lost),
      bytes_per_event: (Watch.stats.sum(&:bytes) / events.to_f).round(2) }
  end

  # Returns the untraced time of the workload with offlock loaded, as a multiple of the time without it.
  def loaded
    options = $LOAD_PATH.map { |folder| "-I#{folder}" }
    ways = { without: [], with: [*options, "-rofflock"] }
    times = ways.transform_values { [] }
    PROCESSES.times { |round| ways.to_a.rotate(round).each { |way, flags| times[way] << alone(flags) } }
    (Bench.median(times[:with]) / Bench.median(times[:without])).round(3)
  end

  def alone(flags)
    command = [RbConfig.ruby, *flags, __FILE__, "--alone", @name.to_s]
    IO.popen({ "RUBYOPT" => nil }, command, &:read).to_f
  end
end

results = Workloads.all.to_h do |name, body|
  row = Overhead.new(name, body).run
  puts "#{name}: #{row.to_json}"
  [name, row]
end
Bench.keep(Bench.by_figure(results))
