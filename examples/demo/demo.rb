# frozen_string_literal: true

# Work on real documents with 1, 2 and 4 threads while a probe simulates a web request.
#
# The probe is a thread that sleeps for one millisecond at a time. Its wake-up delay is the delay of a request handler in
# the same process. All libraries get the same documents, the same number of seconds and the same number of threads.

require "etc"
require "json"
require "offlock"
require "optparse"
require "zlib"

begin
  require "tiktoken_ruby"
rescue LoadError
  # The table then compares with offlock's own call that holds the lock.
end
begin
  require "msgpack"
rescue LoadError
  # The table then has no row for the original.
end

# One way to do an operation: its name in files, its name in the table, and the call.
Way = Struct.new(:key, :name, :call)

# An operation on each input, the ways to do it, and the seconds of one measurement. `answer` returns the part of a result in
# which all ways must agree. `traces` is the folder for traces of the lock, or nil.
Operation = Struct.new(:name, :inputs, :ways, :seconds, :answer, :traces)

# The figures of one way with one number of threads.
Result = Struct.new(:operation, :way, :threads, :mb_per_s, :late_p50_ms, :late_p99_ms, :late_max_ms)

# The comparison and its tables.
class Demo
  PROBE_INTERVAL = 0.001
  MESSAGES = 20
  MESSAGE_DOCUMENTS = 50

  def initialize(documents:, encoding:, seconds:, threads:, traces: nil)
    @documents = documents
    @encoding = encoding
    @seconds = seconds
    @threads = threads
    @traces = traces
  end

  # Measures every way of every operation with every number of threads, and prints a table for each operation.
  # @return [Array<Result>]
  def run
    size = @documents.sum(&:bytesize) / 1e6
    puts format("Ruby %s, %d cores: %d documents, %.1f MB\n\n", RUBY_VERSION, Etc.nprocessors, @documents.size, size)
    [tokenizing, compressing, unpacking].flat_map do |operation|
      check_answers(operation)
      runs = operation.ways.product(@threads)
      results = runs.map { |way, threads| recorded(operation, way, threads) { measure(operation, way, threads) } }
      results.tap { print_table(operation, results) }
    end
  end

  private

  # Tokenizing, in offlock also with a call that holds the lock.
  def tokenizing
    ours = Offlock::Tiktoken.get_encoding(@encoding)
    ways = [
      *tiktoken_itself,
      Way.new("holding", "offlock, holding the lock", ->(text) { ours.encode_ordinary(text, release: :never) }),
      Way.new("off", "offlock, off the lock", ->(text) { ours.encode_ordinary(text) }),
    ]
    Operation.new("tokens, #{@encoding}", @documents, ways, @seconds, :itself.to_proc, @traces)
  end

  # The original, if it is installed.
  def tiktoken_itself
    return [] unless defined?(::Tiktoken::VERSION)

    theirs = ::Tiktoken.get_encoding(@encoding)
    [Way.new("peer", "tiktoken_ruby #{::Tiktoken::VERSION}", ->(text) { theirs.encode_ordinary(text) })]
  end

  # Compression in zlib's format, at its default level.
  def compressing
    ways = [Way.new("zlib", "Ruby's Zlib", ->(text) { Zlib.deflate(text) }),
            Way.new("off", "offlock, off the lock", ->(text) { Offlock::Zlib.deflate(text) })]
    Operation.new("Zlib.deflate", @documents, ways, @seconds / 3, ->(packed) { Zlib.inflate(packed) })
  end

  # Unpacking messages with a record for each line of some documents, and extracting one field of all records.
  def unpacking
    ours = Offlock::MessagePack
    ways = [Way.new("off", "offlock, off the lock", ->(message) { ours.unpack(message) }),
            Way.new("field", "offlock, one field", ->(message) { ours.extract(message, "text") })]
    if defined?(::MessagePack::VERSION)
      ways.unshift(Way.new("peer", "msgpack #{::MessagePack::VERSION}", ->(message) { ::MessagePack.unpack(message) }))
    end
    texts = ->(unpacked) { unpacked.map { |record| record.is_a?(Hash) ? record["text"] : record } }
    Operation.new("MessagePack.unpack", messages, ways, @seconds / 3, texts)
  end

  def messages
    @documents.first(MESSAGES * MESSAGE_DOCUMENTS).each_slice(MESSAGE_DOCUMENTS).map do |documents|
      lines = documents.flat_map { |text| text.lines(chomp: true) }
      Offlock::MessagePack.pack(lines.map { |line| { "text" => line, "size" => line.size } })
    end
  end

  # Speed-up is against one thread of the same way.
  def print_table(operation, results)
    puts format("%-28s%7s%9s%10s   a request is late by, ms", operation.name, "threads", "MB/s", "speed-up")
    puts format("%54s%9s%9s%9s", "", "p50", "p99", "max")
    results.group_by(&:way).each_value { |rows| rows.each { |row| puts table_row(row, rows.first) } }
    puts
  end

  def table_row(row, first)
    format("%-28s%7d%9.1f%10s%9.2f%9.2f%9.2f", row.equal?(first) ? row.way : "", row.threads, row.mb_per_s,
           format("%.2fx", row.mb_per_s / first.mb_per_s), row.late_p50_ms, row.late_p99_ms, row.late_max_ms)
  end

  def check_answers(operation)
    operation.inputs.each_slice([1, operation.inputs.size / 50].max) do |input, *|
      next if operation.ways.map { |way| operation.answer.(way.call.(input)) }.uniq.one?

      abort "#{operation.name}: the ways disagree on the input that begins #{input[0, 60].inspect}"
    end
  end

  # Records a trace of the lock into a file named after the run.
  def recorded(operation, way, threads, &)
    return yield unless operation.traces

    Offlock::Lock.trace(File.join(operation.traces, "ruby-#{way.key}-#{threads}.offlock"), &)
  end

  def measure(operation, way, threads)
    progress "Ruby: #{operation.name}, #{way.name}, #{threads} thread#{"s" if threads > 1} …"
    late, stop = [], Thread::Queue.new
    probe = named("request") { run_probe(late, stop) }
    started = now
    bytes = work(operation.inputs, way, threads, started + operation.seconds)
    rate = bytes / (now - started) / 1e6
    stop.close
    probe.join
    progress ""
    late.sort!
    Result.new(operation.name, way.name, threads, rate, *[0.50, 0.99, 1.0].map { |share| percentile_ms(late, share) })
  end

  # Works on inputs in turn on as many threads until the deadline.
  # @return [Integer] the number of bytes processed
  def work(inputs, way, threads, deadline)
    turns = (0...threads).map { |first| first.step(by: threads) }
    workers = turns.map.with_index(1) { |turn, n| named("worker #{n}") { work_alone(inputs, way, turn, deadline) } }
    workers.sum(&:value)
  end

  def named(name, &) = Thread.new(&).tap { |thread| thread.name = name }

  def work_alone(inputs, way, turn, deadline)
    bytes = 0
    while now < deadline
      input = inputs[turn.next % inputs.size]
      way.call.(input)
      bytes += input.bytesize
    end
    bytes
  end

  def run_probe(late, stop)
    until stop.closed?
      asked = now + PROBE_INTERVAL
      sleep PROBE_INTERVAL
      late << (now - asked)
    end
  end

  def percentile_ms(ordered, share)
    ordered[[ordered.size - 1, (ordered.size * share).to_i].min] * 1e3
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Shows the current measurement, on a terminal in its last line.
  def progress(message)
    if $stderr.tty?
      $stderr.print "\r\e[K#{message}"
    elsif !message.empty?
      warn message
    end
  end
end

# Returns the text of each listed file that is UTF-8.
def read_documents(listing)
  File.readlines(listing, chomp: true).filter_map do |name|
    text = File.read(name, encoding: Encoding::UTF_8)
    text if text.valid_encoding?
  end
end

options = { encoding: "o200k_base", seconds: 3.0, threads: [1, 2, 4] }
parser = OptionParser.new("Usage: demo.rb [options] DOCUMENTS   (a file that names one document a line)") do |o|
  o.on("--encoding NAME", "default: #{options[:encoding]}")
  o.on("--seconds N", Float, "per row of the first table (default: #{options[:seconds]})")
  o.on("--threads N,N", Array, "default: #{options[:threads].join(",")}") { |list| list.map { |n| Integer(n) } }
  o.on("--traces DIR", "also record who holds the lock, in this folder")
  o.on("--json FILE", "also write the figures to this file")
end
listing, = parser.parse!(into: options)
abort parser.help unless listing

json = options.delete(:json)
options[:threads] = options[:threads].map { |n| Integer(n) }
documents = read_documents(listing)
abort "#{listing}: lists no document that is UTF-8 text" if documents.empty?

results = Demo.new(documents:, **options).run
File.write(json, "#{JSON.pretty_generate(results.map(&:to_h))}\n") if json
