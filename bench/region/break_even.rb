# frozen_string_literal: true

# Measures the cost and the gain of releasing the lock, by operation and size of the input.
#
#   script/ruby bench/region/break_even.rb [--only tokens|zlib.inflate|zstd|...] [--json FILE]
#
# - idle: the time of a call that releases the lock, as a multiple of one that holds it, while no other thread wants it;
# - two threads, four threads: their speed when the calls release the lock, as a multiple of that when they hold it;
# - beside a computing thread: the same for a thread that makes calls, and for the thread that computes.
#
# It pays to release the lock for an input when two threads gain from it and the idle cost is small.

require_relative "../bench"
require "offlock"

# One operation on inputs of one size, measured with calls that release the lock and calls that hold it.
class BreakEven
  ROUNDS = 3
  SECONDS = 0.1
  RELEASES = %i[never always].freeze

  # `call` takes an input and the value of `release:`.
  def initialize(inputs, &call)
    @inputs = inputs
    @call = call
  end

  def run
    alone = gain { |release| [calls_in(1, release)] }
    two, four = [2, 4].map { |threads| gain { |release| [calls_in(threads, release)] } }
    beside = gain { |release| beside_a_computing_thread(release) }
    { size: @inputs.sum(&:bytesize) / @inputs.size, idle: (1 / alone[0]).round(3), two_threads: two[0].round(3),
      four_threads: four[0].round(3), beside_computing: beside[0].round(4), computing: beside[1].round(3) }
  end

  private

  # Returns the block's numbers for :always as multiples of those for :never.
  def gain
    counts = RELEASES.to_h { |release| [release, []] }
    ROUNDS.times { RELEASES.each { |release| counts[release] << Bench.undisturbed { yield(release) } } }
    never, always = RELEASES.map { |release| counts[release].transpose.map { |values| Bench.median(values) } }
    always.zip(never).map { |many, few| many.fdiv(few) }
  end

  # Returns how many inputs the threads process in a fixed time, which is longer than their time slices of 100 ms.
  def calls_in(threads, release)
    stop = Bench.clock + (SECONDS * [threads, 3].min)
    Array.new(threads) { |number| Thread.new { calls(number, release, stop) } }.sum(&:value)
  end

  def calls(number, release, stop = Bench.clock + SECONDS)
    count = 0
    inputs = @inputs.rotate(number * 7)
    while Bench.clock < stop
      @call.(inputs[count % inputs.size], release)
      count += 1
    end
    count
  end

  def beside_a_computing_thread(release)
    computed = 0
    computing = Thread.new { loop { computed += 1 } }
    count = Array.new(4) { calls(0, release) }.sum
    computing.kill.join
    [count, computed]
  end
end

ENCODING = Offlock::Tiktoken.get_encoding(:o200k_base)
ENCODING.count("x")
TEXTS = Bench.texts.values
OURS = Offlock::Zlib
ZSTD = Offlock::Zstd
KB = 1 << 10

# Returns forty texts of each kind with this many bytes.
def texts(size) = TEXTS.flat_map { |text| (0...40).map { |n| text.byteslice(n * 120_000, size).scrub("") } }

# Returns compressed data of about this many bytes.
def packed(size, pack) = texts(size * 5 / 2).map(&pack)

# For each operation: sizes, a function from a size to inputs, and the call.
OPERATIONS = {
  "tokens.encode" => [[256, 512, KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB, 32 * KB, 64 * KB, 128 * KB], method(:texts),
                      ->(text, release) { ENCODING.encode_ordinary(text, release:) }],
  "zlib.deflate" => [[512, KB, 2 * KB, 4 * KB, 8 * KB], method(:texts),
                     ->(text, release) { OURS.deflate(text, 6, release:) }],
  "zlib.inflate" => [[KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB], ->(size) { packed(size, OURS.method(:deflate)) },
                     ->(data, release) { OURS.inflate(data, release:) }],
  "zlib.gzip" => [[KB, 4 * KB], method(:texts), ->(text, release) { OURS.gzip(text, release:) }],
  "zlib.gunzip" => [[2 * KB, 8 * KB], ->(size) { packed(size, OURS.method(:gzip)) },
                    ->(data, release) { OURS.gunzip(data, release:) }],
  "zstd.compress" => [[512, KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB], method(:texts),
                      ->(text, release) { ZSTD.compress(text, release:) }],
  "zstd.decompress" => [[KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB, 32 * KB], ->(size) { packed(size, ZSTD.method(:compress)) },
                        ->(data, release) { ZSTD.decompress(data, release:) }],
  "zlib.crc32" => [[64 * KB, 128 * KB, 256 * KB, 512 * KB, KB * KB], method(:texts),
                   ->(text, release) { OURS.crc32(text, release:) }],
  "zlib.adler32" => [[128 * KB, 512 * KB], method(:texts), ->(text, release) { OURS.adler32(text, release:) }],
}.freeze

only = ARGV[ARGV.index("--only") + 1] if ARGV.include?("--only")
results = OPERATIONS.select { |name, _| only.nil? || name.start_with?(only) }.to_h do |name, (sizes, inputs, call)|
  headings = ["bytes", "idle cost", "two threads", "four threads", "beside computing", "computing"]
  puts "#{name}:", format("%8s%12s%14s%14s%19s%12s", *headings)
  rows = sizes.map do |size|
    BreakEven.new(inputs.(size), &call).run.tap do |row|
      puts format("%8d%11.2fx%13.2fx%13.2fx%18.4fx%11.2fx", *row.values)
    end
  end
  [name, rows]
end
kept = results.flat_map do |name, rows|
  rows.map { |row| Bench.row("#{name}, #{row[:size]} bytes", row.except(:size)) }
end
Bench.keep(kept)
