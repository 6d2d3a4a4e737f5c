# frozen_string_literal: true

# Measures how a loop of small calls and other threads slow each other down.
#
#   script/ruby bench/region/neighbours.rb [--only count|gunzip|...] [--json FILE]
#
# The contestants alternate: offlock's call, the same with release: :never, and the original's. There are four situations:
# alone; beside a thread that repeatedly sleeps for 1 ms (its wake-up delay in ms: median and 99th percentile); beside a thread
# that computes in Ruby (its rounds per second); in four threads at once. The figures are medians of the rounds.

require "stringio"
require_relative "../bench"
require "offlock"

# One call in the four situations.
class Neighbours
  SECONDS = 0.8
  FIGURES = ["alone", "sleeper", "late p50", "late p99", "computing", "its rounds", "four"].freeze

  def initialize(call)
    @call = call
  end

  def figures
    computed = 0
    rate, late = beside_sleeper
    alone = rate_of { nil }
    beside = rate_of { 100.times { nil } && computed += 1 }
    FIGURES.zip([alone, rate, *late, beside, computed / SECONDS, in_four_threads]).to_h
  end

  private

  # Returns the calls per second while another thread repeats the block.
  def rate_of(&block)
    other = Thread.new { block.call && loop(&block) }
    calls_until(Bench.clock + SECONDS) / SECONDS
  ensure
    other.kill.join
  end

  def calls_until(stop)
    calls = 0
    while Bench.clock < stop
      @call.()
      calls += 1
    end
    calls
  end

  def beside_sleeper
    late = []
    rate = rate_of do
      before = Bench.clock
      sleep(0.001)
      late << ((Bench.clock - before - 0.001) * 1e3)
    end
    late.sort!
    [rate, [late[late.size / 2] || 1e3 * SECONDS, late[late.size * 99 / 100] || 1e3 * SECONDS]]
  end

  def in_four_threads
    stop = Bench.clock + SECONDS
    Array.new(4) { Thread.new { calls_until(stop) } }.sum(&:value) / SECONDS
  end
end

TEXT = Bench.texts.fetch("prose").byteslice(30_000, 1500).scrub("")
GZ = Zlib.gzip(TEXT)
DEFLATED = Zlib.deflate(TEXT)
O200K = Offlock::Tiktoken.get_encoding(:o200k_base)
OURS = Offlock::Zlib

OPERATIONS = {
  "count 13 bytes" => { offlock: -> { O200K.count("Hello, world.") },
                        never: -> { O200K.count("Hello, world.", release: :never) } },
  "encode 1.5 KB" => { offlock: -> { O200K.encode(TEXT) }, never: -> { O200K.encode(TEXT, release: :never) } },
  "gunzip 0.9 KB" => { offlock: -> { OURS.gunzip(GZ) }, never: -> { OURS.gunzip(GZ, release: :never) },
                       zlib: -> { Zlib.gunzip(GZ) } },
  "GzipReader 0.9 KB" => { offlock: -> { OURS::GzipReader.new(StringIO.new(GZ)).read },
                           zlib: -> { Zlib::GzipReader.new(StringIO.new(GZ)).read } },
  "inflate 0.9 KB" => { offlock: -> { OURS.inflate(DEFLATED) }, zlib: -> { Zlib.inflate(DEFLATED) } },
  "deflate 1.5 KB" => { offlock: -> { OURS.deflate(TEXT) }, zlib: -> { Zlib.deflate(TEXT) } },
}.freeze
ROUNDS = 3

only = ARGV[ARGV.index("--only") + 1] if ARGV.include?("--only")
results = OPERATIONS.select { |name, _| name.start_with?(only.to_s) }.to_h do |name, calls|
  rounds = Array.new(ROUNDS) { calls.transform_values { |call| Neighbours.new(call).figures } }
  rows = calls.to_h do |contestant, _|
    medians = Neighbours::FIGURES.to_h { |figure| [figure, Bench.median(rounds.map { |r| r[contestant][figure] }).round(2)] }
    [contestant, medians]
  end
  puts "#{name} (calls per second; delays in ms)", format("%10s#{"%12s" * 7}", "", *Neighbours::FIGURES)
  rows.each { |contestant, row| puts format("%10s%12d%12d%12.2f%12.2f%12d%12d%12d", contestant, *row.values) }
  [name, rows]
end
Bench.keep(Bench.by_contestant(results))
