# frozen_string_literal: true

# Compares Offlock::Zstd with the gem zstd-ruby: script/ruby bench/zstd/ruby_bench.rb [--json FILE]
#
# The gem is taken from the load path (RUBYLIB); without it only the gains of two threads are measured. Every answer is compared
# before anything is timed. Times are medians of runs that alternate. A row works through 1 MB of different data, or one larger
# piece. `times_zstd_ruby` above 1 says that offlock is faster; `two_threads` is the speed of two threads as a multiple of that of
# one.

require_relative "../bench"
require "offlock"
begin
  require "zstd-ruby"
rescue LoadError
  warn "zstd-ruby is not installed: left out"
end

# The calls of one module, by the names in the rows.
class ZstdBench
  GEM = Object.const_get(:Zstd) if Object.const_defined?(:Zstd)
  MODULES = { "offlock" => Offlock::Zstd, "zstd-ruby" => GEM }.compact.freeze
  SIZES = { "100 bytes" => 100, "1 KB" => 1_000, "10 KB" => 10_000, "100 KB" => 100_000, "10 MB" => 10_000_000 }.freeze

  def initialize
    text = Bench.texts.fetch("prose").b * 3
    kinds = { "text" => text.byteslice(200_000..), "random" => Random.new(42).bytes(10_000_000) }
    @samples = kinds.transform_values { |data| SIZES.transform_values { |size| in_pieces(data, size) } }
  end

  def run = { **(GEM ? rows.merge(dictionaries, streams) : {}), **threads }

  private

  # Returns 1 MB in pieces, or one larger piece.
  def in_pieces(data, size)
    Array.new((1_000_000 / size).clamp(1, nil)) { |number| data.byteslice(number * size, size).freeze }
  end

  def rows
    @samples.flat_map do |kind, by_size|
      by_size.flat_map do |size, pieces|
        packed = pieces.map { |piece| GEM.compress(piece) }
        levels = size == "100 KB" ? [1, 3, 9, 19] : [1, 3, 9]
        [["decompress, #{kind}, #{size}", compare(pieces) { |zstd| -> { packed.map { |piece| zstd.decompress(piece) } } }],
         *levels.map { |level| ["compress level #{level}, #{kind}, #{size}", compressing(pieces, level:)] }]
      end
    end.to_h
  end

  def compressing(pieces, **options)
    calls = MODULES.transform_values { |zstd| -> { pieces.map { |piece| zstd.compress(piece, **options) } } }
    sizes = calls.transform_values { |call| call.().sum(&:bytesize) }
    figures = compare(pieces, unpack: true, dict: options[:dict]) { |zstd| calls.fetch(MODULES.key(zstd)) }
    figures.merge(size_to_zstd_rubys: sizes["offlock"].fdiv(sizes["zstd-ruby"]).round(4))
  end

  # Returns the speed of offlock as a multiple of the gem's, and MB of uncompressed bytes per second.
  def compare(pieces, unpack: false, dict: nil, &)
    calls = MODULES.transform_values(&)
    calls.each do |name, call|
      answers = unpack ? call.().map { |packed| GEM.decompress(packed, dict:) } : call.()
      abort "#{name} gives another answer" unless answers == pieces
    end
    times = Bench.alternate(calls.transform_values { |call| ->(_) { call.() } }, pieces.one? ? 5 : 9)
    times = times.transform_values { |values| Bench.median(values) }
    { times_zstd_ruby: (times["zstd-ruby"] / times["offlock"]).round(2),
      MB_per_s: times.transform_values { |time| (pieces.sum(&:bytesize) / 1e6 / time).round(1) } }
  end

  # Messages of 100 bytes, with a dictionary as a String and prepared.
  def dictionaries
    pieces = @samples["text"]["100 bytes"]
    content = Offlock::Zstd.train_dict(pieces, 20_000).dict_content
    ours, theirs = Offlock::Zstd::CDict.new(content), GEM::CDict.new(content)
    packed = pieces.map { |piece| GEM.compress(piece, dict: theirs) }
    dicts = { Offlock::Zstd => Offlock::Zstd::DDict.new(content), GEM => GEM::DDict.new(content) }
    { "compress, text, 100 bytes, CDict" => compare(pieces, unpack: true, dict: dicts[GEM]) do |zstd|
      dict = zstd == GEM ? theirs : ours
      -> { pieces.map { |piece| zstd.compress(piece, dict:) } }
    end, "decompress, text, 100 bytes, DDict" => compare(pieces) do |zstd|
      -> { packed.map { |piece| zstd.decompress(piece, dict: dicts.fetch(zstd)) } }
    end }
  end

  # 10 MB in pieces of 64 KB.
  def streams
    plain = @samples["text"]["10 MB"].first
    pieces, packed = [plain, GEM.compress(plain)].map { |data| data.unpack("a65536" * data.bytesize.ceildiv(65_536)) }
    { "compress, stream of text, 10 MB" => compare([plain], unpack: true) do |zstd|
      -> { zstd::StreamingCompress.new.then { |stream| [through(stream, :compress, pieces) << stream.finish] } }
    end, "decompress, stream of text, 10 MB" => compare([plain]) do |zstd|
      -> { [through(zstd::StreamingDecompress.new, :decompress, packed)] }
    end }
  end

  def through(stream, method, pieces)
    pieces.each_with_object(String.new) { |piece, made| made << stream.public_send(method, piece) }
  end

  # The speed of two threads as a multiple of that of one, for each module.
  def threads
    @samples["text"].except("10 MB").to_h do |size, pieces|
      packed = pieces.map { |piece| Offlock::Zstd.compress(piece) }
      gains = MODULES.flat_map do |name, zstd|
        [["compress, #{name}", gain(pieces) { |piece| zstd.compress(piece) }],
         ["decompress, #{name}", gain(packed) { |piece| zstd.decompress(piece) }]]
      end
      ["two threads, text, #{size}", { two_threads: gains.to_h }]
    end
  end

  def gain(inputs, seconds: 0.3, &work)
    count = (seconds / Bench.seconds { 100.times { |at| work.(inputs[at % inputs.size]) } } * 50).ceil
    ways = { one: [2 * count, 1], two: [count, 2] }.transform_values { |way| ->(_) { in_threads(inputs, *way, &work) } }
    times = Bench.alternate(ways, 5).transform_values { |values| Bench.median(values) }
    (times[:one] / times[:two]).round(2)
  end

  def in_threads(inputs, count, threads)
    Array.new(threads) do |thread|
      Thread.new { count.times { |at| yield inputs[(at + (thread * 7)) % inputs.size] } }
    end.each(&:join)
  end
end

results = ZstdBench.new.run
results.each { |name, figures| puts "#{name.ljust(45)} #{figures}" }
peer = ZstdBench::MODULES["zstd-ruby"]
Bench.keep(Bench.by_figure(results), "zstd-ruby": peer && peer::VERSION, zstd: Offlock::Zstd::LIBRARY_VERSION)
