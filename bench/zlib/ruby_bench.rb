# frozen_string_literal: true

# Compares Offlock::Zlib with Ruby's own Zlib: script/ruby bench/zlib/ruby_bench.rb [--json FILE]
#
# Every answer is compared before anything is timed. Times are medians of runs that alternate. A row works through 1 MB of
# different data, because the branch predictor would learn a short input that repeats.

require_relative "../bench"
require "offlock"

# The calls of one module, by the names in the rows.
class ZlibBench
  MODULES = { "offlock" => Offlock::Zlib, "zlib" => Zlib }.freeze
  SIZES = { "1 KB" => 1_000, "10 KB" => 10_000, "100 KB" => 100_000, "10 MB" => 10_000_000 }.freeze

  def initialize
    text = Bench.texts.fetch("prose").b * 3
    noise = Random.new(42).bytes(10_000_000)
    kinds = { "text" => text.byteslice(200_000..), "random" => noise }
    @samples = kinds.transform_values do |data|
      SIZES.transform_values { |size| in_pieces(data, size) }
    end
  end

  def run
    { rows: rows, streams: streams, threads: threads, feature6615: feature6615, gigabyte_growth_mb: gigabyte }
  end

  private

  # Returns 1 MB in pieces, or one larger piece.
  def in_pieces(data, size)
    Array.new((1_000_000 / size).clamp(1, nil)) { |number| data.byteslice(number * size, size).freeze }
  end

  def rows
    @samples.flat_map do |kind, by_size|
      by_size.flat_map do |size, pieces|
        packed = pieces.map { |piece| Zlib.deflate(piece) }
        levels = pieces.one? ? [6] : [1, 6, 9]
        [["inflate, #{kind}, #{size}", compare(pieces) { |zlib| -> { packed.map { |piece| zlib.inflate(piece) } } }]] +
          levels.map { |level| ["deflate level #{level}, #{kind}, #{size}", deflating(pieces, level)] }
      end
    end.to_h
  end

  def deflating(pieces, level)
    calls = MODULES.transform_values { |zlib| -> { pieces.map { |piece| zlib.deflate(piece, level) } } }
    sizes = calls.transform_values { |call| call.().sum(&:bytesize) }
    figures = compare(pieces, unpack: true) { |zlib| calls.fetch(MODULES.key(zlib)) }
    figures.merge(size_to_zlibs: sizes["offlock"].fdiv(sizes["zlib"]).round(4))
  end

  # Returns the speed of offlock as a multiple of zlib's, and MB of uncompressed bytes per second.
  def compare(pieces, unpack: false, rounds: pieces.one? ? 3 : 7, &)
    calls = MODULES.transform_values(&)
    check_answers(calls, pieces, unpack)
    times = Bench.alternate(calls.transform_values { |call| ->(_) { call.() } }, rounds)
    times = times.transform_values { |values| Bench.median(values) }
    { times_zlib: (times["zlib"] / times["offlock"]).round(2),
      MB_per_s: times.transform_values { |time| (pieces.sum(&:bytesize) / 1e6 / time).round(1) } }
  end

  def check_answers(calls, pieces, unpack)
    calls.each do |name, call|
      answers = unpack ? call.().map { |packed| Zlib.inflate(packed) } : call.()
      abort "#{name} gives another answer" unless answers == pieces
    end
  end

  def streams
    plain = @samples["text"]["10 MB"].first
    pieces = plain.unpack("a65536" * (plain.bytesize / 65_536)) << plain.byteslice((plain.bytesize / 65_536 * 65_536)..)
    packed = Zlib.deflate(plain)
    packed_pieces = (0...packed.bytesize).step(65_536).map { |at| packed.byteslice(at, 65_536) }
    rows = [1, 6, 9].to_h do |level|
      figures = compare([plain], unpack: true) { |zlib| -> { [through(zlib::Deflate.new(level), :deflate, pieces)] } }
      ["deflate level #{level}", figures]
    end
    rows.merge("inflate" => compare([plain]) { |zlib| -> { [through(zlib::Inflate.new, :inflate, packed_pieces)] } })
  end

  def through(stream, method, pieces)
    pieces.each_with_object(String.new) { |piece, made| made << stream.public_send(method, piece) } << stream.finish
  ensure
    stream.close
  end

  # Returns the speed of several threads as a multiple of that of one.
  def threads
    text, noise = @samples.values_at("text", "random")
    [["1,000 random bytes, 4 threads", noise["1 KB"], 4], ["1 KB of text, 4 threads", text["1 KB"], 4],
     ["10 KB of text, 4 threads", text["10 KB"], 4], ["100 KB of text, 2 threads", text["100 KB"], 2],
     ["10 MB of text, 2 threads", text["10 MB"], 2]].to_h { |name, *work| [name, gains(*work)] }
  end

  def gains(pieces, threads)
    ours, *others = MODULES.map { |name, zlib| works(name, zlib, pieces) }
    gains = [ours, *others].inject(:merge).merge(strings(pieces)).transform_values { |work| gain(work, threads) }
    # The gain of processes is the upper limit on the machine.
    in_processes = ours.transform_values { |work| gain(work, threads) { |*way| in_processes(*way) } }
    gains.merge(in_processes.transform_keys { |name| "#{name}, in processes" })
  end

  def works(name, zlib, pieces)
    packed = pieces.map { |piece| Zlib.deflate(piece) }
    { "inflate, #{name}" => ->(number) { zlib.inflate(packed[number % packed.size]) },
      "deflate, #{name}" => ->(number) { zlib.deflate(pieces[number % pieces.size], 6) } }
  end

  # For comparison: a method that makes a String with the lock held.
  def strings(pieces)
    { "String#+" => ->(number) { pieces[number % pieces.size] + pieces.first } }
  end

  # The runs are so long that thread starts and garbage collections have the same share as in a program.
  def gain(work, threads, seconds: 0.3, rounds: 5)
    each = (seconds / Bench.seconds { 10.times(&work) } * 10 / threads).ceil
    ways = { one: [work, each * threads, 1], many: [work, each, threads] }
    ways = ways.transform_values { |way| block_given? ? yield(*way) : ->(_) { in_threads(*way) } }
    times = Bench.alternate(ways, rounds).transform_values { |values| Bench.median(values) }
    (times[:one] / times[:many]).round(3)
  end

  def in_threads(work, count, threads)
    Array.new(threads) { Thread.new { count.times(&work) } }.each(&:join)
  end

  def in_processes(work, count, processes)
    Bench::Processes.new(processes) { count.times(&work) }
  end

  # The four benchmarks of Ruby's Feature #6615, whose strings are 1,000 random bytes: serial and in four threads.
  def feature6615
    noise = Random.new(0)
    plain = Array.new(10_000) { noise.bytes(1_000) }
    packed = plain.map { |string| Zlib.deflate(string) }
    [[:deflate, plain], [:inflate, packed]].flat_map do |method, strings|
      [["serial #{method}", 1], ["parallel #{method}", 4]].map do |name, threads|
        [name, alternating(method, strings, threads)]
      end
    end.to_h
  end

  def alternating(method, strings, threads)
    contestants = MODULES.transform_values do |zlib|
      lambda do |_|
        strings.each_slice(strings.size / threads).map do |share|
          Thread.new { share.each { |string| zlib.public_send(method, string) } }
        end.each(&:join)
      end
    end
    seconds = Bench.alternate(contestants, 3).transform_values { |times| Bench.median(times).round(4) }
    { times_zlib: (seconds["zlib"] / seconds["offlock"]).round(2), seconds: }
  end

  # Returns the growth of the peak memory, in MB, of a process that compresses and decompresses 1 GB piece by piece.
  def gigabyte
    piece = @samples["text"]["10 MB"].first.byteslice(0, 1 << 20)
    packer, unpacker = Offlock::Zlib::Deflate.new(1), Offlock::Zlib::Inflate.new
    before, made = peak, 0
    1024.times { made += unpacker.inflate(packer.deflate(piece)).bytesize }
    made += unpacker.inflate(packer.finish).bytesize
    abort "#{made} bytes came back" unless made == 1024 * piece.bytesize
    ((peak - before) / 1024.0).round(1)
  end

  def peak
    File.read("/proc/self/status")[/VmHWM:\s*(\d+)/, 1].to_i
  end
end

results = ZlibBench.new.run
results[:rows].merge(results[:streams].transform_keys { |name| "stream, #{name}" }).each do |name, figures|
  puts format("%-40s x%-6s %s", name, figures[:times_zlib], figures[:size_to_zlibs])
end
puts JSON.pretty_generate(results.slice(:threads, :feature6615, :gigabyte_growth_mb))
tables = [
  results[:rows],
  results[:streams].transform_keys { |name| "10 MB of text in pieces of 64 KB, #{name}" },
  results[:threads].transform_values { |gains| { times_one_thread: gains } },
  results[:feature6615].transform_keys { |name| "Feature #6615, #{name}" },
  { "1 GB stream" => { growth_MB: results[:gigabyte_growth_mb] } }
]
Bench.keep(Bench.by_figure(tables.inject(:merge)), zlib: Zlib.zlib_version)
