# frozen_string_literal: true

# What it costs to leave the lock, and what it gains, by size of the text.
#
#   script/ruby bench/region/break_even.rb [--json FILE]
#
# - idle: time of a call that leaves the lock, as a multiple of one that keeps it, nobody else wanting the lock;
# - two threads: how much more two threads get done when their calls leave the lock;
# - beside a computing thread: the same two for a thread that encodes, and how much more the other one computes.
#
# A text is worth leaving the lock for when two threads gain from it and the idle cost is small.

require_relative "../bench"
require "offlock"

# One size of text, measured with calls that leave the lock and calls that keep it.
class BreakEven
  SIZES = [256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10].freeze
  ROUNDS = 5
  SECONDS = 0.2
  RELEASES = %i[never always].freeze

  def initialize(encoding, texts, size)
    @encoding = encoding
    @size = size
    @texts = texts.values.flat_map { |text| (0...40).map { |n| text.byteslice(n * 120_000, size).scrub("") } }
  end

  def run
    alone = gain { |release| [calls_in(1, release)] }
    two = gain { |release| [calls_in(2, release)] }
    beside = gain { |release| beside_a_computing_thread(release) }
    { size: @size, idle: (1 / alone[0]).round(3), two_threads: two[0].round(3),
      beside_computing: beside[0].round(4), computing: beside[1].round(3) }
  end

  private

  # The numbers that the block gives for :always as multiples of those for :never.
  def gain
    counts = RELEASES.to_h { |release| [release, []] }
    ROUNDS.times { RELEASES.each { |release| counts[release] << yield(release) } }
    never, always = RELEASES.map { |release| counts[release].transpose.map { |values| Bench.median(values) } }
    always.zip(never).map { |many, few| many.fdiv(few) }
  end

  # How many texts the threads get done, all in the same stretch of time, which is longer than their turns of 100 ms.
  def calls_in(threads, release)
    stop = Bench.clock + (SECONDS * threads)
    Array.new(threads) { |number| Thread.new { calls(number, release, stop) } }.sum(&:value)
  end

  def calls(number, release, stop = Bench.clock + SECONDS)
    count = 0
    texts = @texts.rotate(number * 7)
    while Bench.clock < stop
      @encoding.encode_ordinary(texts[count % texts.size], release:)
      count += 1
    end
    count
  end

  def beside_a_computing_thread(release)
    computed = 0
    computing = Thread.new { loop { computed += 1 } }
    count = Array.new(5) { calls(0, release) }.sum
    computing.kill.join
    [count, computed]
  end
end

encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
encoding.count("x")
texts = Bench.texts
puts format("%8s%12s%14s%19s%12s", "bytes", "idle cost", "two threads", "beside computing", "computing")
results = BreakEven::SIZES.map do |size|
  BreakEven.new(encoding, texts, size).run.tap do |row|
    puts format("%8d%11.2fx%13.2fx%18.4fx%11.2fx", *row.values)
  end
end
Bench.keep(results)
