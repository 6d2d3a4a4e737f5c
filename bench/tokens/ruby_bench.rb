# frozen_string_literal: true

# Compares Offlock::Tiktoken with tiktoken_ruby on documents of 1 to 20 KB: in one thread, in several, in Ractors, and in
# processes, whose speed-up is the upper limit on the machine.
#
#   TIKTOKEN_RUBY_LIB=path/to/tiktoken_ruby/lib script/ruby bench/tokens/ruby_bench.rb [--json FILE]
#
# Every round has other documents. The contestants take turns on them, each warmed up with those of the round before, as in a
# program that tokenizes one document after the other. The figures are medians over the rounds, in MB of text per second. All
# answers are compared before anything is timed.

require_relative "../bench"
require "offlock"

peer = ENV.fetch("TIKTOKEN_RUBY_LIB", nil)
$LOAD_PATH.unshift(peer) if peer
begin
  require "tiktoken_ruby"
rescue LoadError
  warn "without tiktoken_ruby (set TIKTOKEN_RUBY_LIB): only offlock is measured"
end
Warning[:experimental] = false

# Rounds of documents, measured for one encoding.
class TokensBench
  ROUNDS = 7
  ENCODINGS = %i[cl100k_base o200k_base].freeze

  def initialize(name, texts)
    @name = name
    @ours = Offlock::Tiktoken.get_encoding(name)
    @theirs = ::Tiktoken.get_encoding(name) if defined?(::Tiktoken::Encoding)
    @rounds = texts.transform_values { |text| in_rounds(Bench.documents(text)) }
    mixed = @rounds.values.map(&:flatten).inject(:zip).flatten.compact
    # Few but long rounds, because threads start with cold caches.
    @mixed = in_rounds(mixed, 3) * 3
  end

  def run
    check_answers
    { encoding: @name, single:, processes: together("processes", processes),
      threads: together("threads", threaded), ractors: together("Ractors", ractors) }
  end

  private

  def in_rounds(documents, count = ROUNDS)
    documents.each_slice(documents.size.fdiv(count).ceil).map { |round| Ractor.make_shareable(round) }
  end

  def check_answers
    return unless @theirs

    @rounds.values.flatten.each do |document|
      next if @ours.encode_ordinary(document) == @theirs.encode_ordinary(document)

      abort "#{@name}: answers differ for #{document[0, 100].inspect}"
    end
  end

  def ways
    ours = @ours
    ways = { "offlock" => ->(text) { ours.encode_ordinary(text) },
             "offlock, keeping the lock" => ->(text) { ours.encode_ordinary(text, release: :never) },
             "offlock, packed" => ->(text) { ours.encode_ordinary(text, packed: true) },
             "offlock, count" => ->(text) { ours.count(text) } }
    theirs = @theirs or return ways
    { "tiktoken_ruby" => ->(text) { theirs.encode_ordinary(text) } }.merge(ways)
  end

  def single
    speeds = @rounds.transform_values do |rounds|
      megabytes_per_second(ways.transform_values { |way| ->(round) { rounds[round].each(&way) } }, rounds)
    end
    show(speeds)
    speeds
  end

  def show(speeds)
    puts "\n#{@name}, one thread, MB/s".ljust(42) + speeds.keys.map { |kind| kind.rjust(9) }.join
    ways.each_key { |way| puts way.ljust(40) + speeds.values.map { |speed| format("%9.1f", speed[way]) }.join }
  end

  def megabytes_per_second(contestants, rounds)
    times = Bench.alternate(contestants, rounds.size, warm: true)
    times.transform_values do |seconds|
      Bench.median(seconds.each_with_index.map { |time, round| rounds[round].sum(&:bytesize) / 1e6 / time }).round(2)
    end
  end

  # Every number of threads gets the same documents.
  def together(what, contestants)
    speeds = megabytes_per_second(contestants, @mixed)
    puts "\n#{@name}, #{what}, all kinds, MB/s and speed-up"
    speeds.each do |(way, count), speed|
      puts format("%-30s%10d%9.1f%9.2fx", way, count, speed, speed / speeds.fetch([way, 1]))
    end
    speeds.map { |(way, count), speed| { way:, count:, speed: } }
  end

  def threaded
    ways.slice("tiktoken_ruby", "offlock", "offlock, packed").to_a.product([1, 2, 4]).to_h do |(name, way), count|
      [[name, count], ->(round) { in_threads(@mixed[round], count, way) }]
    end
  end

  def in_threads(documents, count, way)
    queue = Queue.new(documents).close
    work = lambda do
      while (document = queue.pop)
        way.(document)
      end
    end
    Array.new(count) { Thread.new(&work) }.each(&:join)
  end

  def processes
    [1, 2].to_h do |count|
      work = lambda do |round, number|
        number.step(@mixed[round].size - 1, count) { |index| @ours.encode_ordinary(@mixed[round][index]) }
      end
      [["offlock", count], Bench::Processes.new(count, &work)]
    end
  end

  def ractors
    [1, 2, 4].to_h { |count| [["offlock", count], ->(round) { in_ractors(@mixed[round], count) }] }
  end

  def in_ractors(documents, count)
    ractors = Array.new(count) do |number|
      Ractor.new(documents, @ours, number, count) do |texts, encoding, first, step|
        first.step(texts.size - 1, step) { |index| encoding.encode_ordinary(texts[index]) }
        nil
      end
    end
    ractors.each(&:value)
  end
end

texts = Bench.texts
results = TokensBench::ENCODINGS.map { |name| TokensBench.new(name, texts).run }
kept = results.flat_map do |result|
  name = result[:encoding]
  single = result[:single].flat_map do |kind, speeds|
    speeds.map { |way, speed| Bench.row("#{name}, #{kind}", { MB_per_s: speed }, way) }
  end
  together = %i[processes threads ractors].flat_map do |what|
    result[what].map { |row| Bench.row("#{name}, all kinds, #{row[:count]} #{what}", { MB_per_s: row[:speed] }, row[:way]) }
  end
  single + together
end
Bench.keep(kept, tiktoken_ruby: defined?(Tiktoken::VERSION) && Tiktoken::VERSION)
