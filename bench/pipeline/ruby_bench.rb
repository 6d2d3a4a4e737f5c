# frozen_string_literal: true

# Compares Offlock::Pipeline with the ways in which Ruby programs count the tokens of compressed shards: Zlib, JSON or
# msgpack, and tiktoken_ruby.
#
#   TIKTOKEN_RUBY_LIB=path/to/tiktoken_ruby/lib MSGPACK_LIB=path/to/msgpack/lib \
#     script/ruby bench/pipeline/ruby_bench.rb [--json FILE]
#
# The shards are two in each round, JSON lines and MessagePack, of documents of 1 to 20 KB, written with gzip. Each round has
# other documents, and each way a process of its own, which sees each document once, after those of a first round that is not
# timed. The counts are compared. The ways take turns, in another order each round; the figures are medians, in MB of text per
# second and as the ratio of its time to offlock's. Peers that are not installed are left out.

require "tmpdir"
require_relative "../bench"

%w[TIKTOKEN_RUBY_LIB MSGPACK_LIB].filter_map { |name| ENV.fetch(name, nil) }.each { |path| $LOAD_PATH.unshift(path) }
%w[tiktoken_ruby msgpack].each do |peer|
  require peer
rescue LoadError
  warn "#{peer} is not installed"
end
require "offlock"

# Rounds of shards, counted in different ways.
class PipelineBench
  ENCODING = :o200k_base
  ROUNDS = 5
  PACKINGS = { "jsonl.gz" => ->(record) { JSON.generate(record) << "\n" },
               "msgpack.gz" => ->(record) { Offlock::MessagePack.pack(record) } }.freeze

  # The first round only warms up.
  def initialize(folder, documents)
    @rounds = documents.each_slice(documents.size.fdiv(ROUNDS + 1).ceil).map.with_index do |texts, round|
      write(File.join(folder, round.to_s), texts)
    end
    @counts = File.join(folder, "counts")
    @theirs = ::Tiktoken.get_encoding(ENCODING) if defined?(::Tiktoken::Encoding)
  end

  def run
    { "jsonl.gz" => ways, "msgpack.gz" => ways_for_messages }.flat_map do |packing, ways|
      compare("1 thread, #{packing}", packing, ways)
    end + compare("2 threads, jsonl.gz", "jsonl.gz", { "offlock" => offlock(1), "offlock, 2 threads" => offlock(2) })
  end

  private

  # Returns the paths by packing, and the bytes of the texts.
  def write(folder, texts)
    Dir.mkdir(folder)
    paths = Hash.new { |all, packing| all[packing] = [] }
    texts.each_slice(texts.size.fdiv(2).ceil).with_index do |part, number|
      records = part.map.with_index { |text, at| { "id" => at.to_s, "text" => text, "meta" => { "n" => at } } }
      PACKINGS.each do |packing, pack|
        paths[packing] << File.join(folder, "#{number}.#{packing}")
        ::Zlib::GzipWriter.open(paths[packing].last) { |gzip| records.each { |record| gzip.write(pack.(record)) } }
      end
    end
    paths.merge(size: texts.sum(&:bytesize))
  end

  def ways
    return { "offlock" => offlock(1) } unless @theirs

    lines = each_record { |gzip| gzip.each_line.lazy.map { |line| JSON.parse(line) } }
    { "offlock" => offlock(1), "Zlib + JSON + tiktoken_ruby" => lines }
  end

  def ways_for_messages
    return { "offlock" => offlock(1) } unless @theirs && defined?(::MessagePack)

    messages = each_record { |gzip| ::MessagePack::Unpacker.new(gzip).each }
    { "offlock" => offlock(1), "Zlib + msgpack + tiktoken_ruby" => messages }
  end

  def offlock(threads)
    ->(paths) { Offlock::Pipeline.read(*paths, threads:).tokens(ENCODING).count.tokens }
  end

  # A way that reads records in turn; the block makes an enumerator of them.
  def each_record
    lambda do |paths|
      paths.sum do |path|
        ::Zlib::GzipReader.open(path) do |gzip|
          yield(gzip).sum { |record| @theirs.encode_ordinary(record["text"]).size }
        end
      end
    end
  end

  def compare(name, packing, ways)
    File.write(@counts, "")
    workers = ways.transform_values do |way|
      Bench::Processes.new(1) { |round, _| File.write(@counts, "#{round} #{way.(@rounds[round][packing])}\n", mode: "a") }
    end
    workers.each_value { |worker| worker.(0) }
    times = Bench.alternate(workers.transform_values { |worker| ->(round) { worker.(round + 1) } }, ROUNDS)
    check(name)
    times.map { |way, seconds| row(name, way, seconds, times.fetch("offlock")) }
  end

  # Each way has written the same number of tokens for each round.
  def check(name)
    different = File.readlines(@counts).uniq.group_by { |line| line[/\d+/] }.values.reject(&:one?)
    abort "#{name}: the counts differ: #{different}" if different.any?
  end

  def row(name, way, seconds, ours)
    speed = Bench.median(seconds.each_with_index.map { |time, round| @rounds[round + 1][:size] / 1e6 / time })
    ratio = Bench.median(seconds.zip(ours).map { |theirs, mine| theirs / mine })
    puts format("%-24s %-32s %8.1f MB/s %7.2f times offlock's time", name, way, speed, ratio)
    Bench.row(name, { MB_per_s: speed.round(2), ratio: ratio.round(3) }, way)
  end
end

documents = Bench.texts.values.flat_map { |text| Bench.documents(text) }.shuffle(random: Random.new(1))
Dir.mktmpdir do |folder|
  rows = PipelineBench.new(folder, documents).run
  Bench.keep(rows, tiktoken_ruby: defined?(Tiktoken::VERSION) && Tiktoken::VERSION,
                   msgpack: defined?(MessagePack::VERSION) && MessagePack::VERSION)
end
