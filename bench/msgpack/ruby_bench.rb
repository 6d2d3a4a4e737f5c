# frozen_string_literal: true

# Compares Offlock::MessagePack with the gem msgpack: small messages, a large message with and without threads, Ractors,
# and memory.
#
#   script/ruby --yjit -I /path/to/msgpack/lib bench/msgpack/ruby_bench.rb [--json FILE]

require "msgpack"
require_relative "../bench"

OURS = Offlock::MessagePack
THEIRS = MessagePack

# An object with its own extension type.
class Extended
  class << self
    attr_accessor :library

    def from_msgpack_ext(data)
      library.unpack(data)
      new
    end
  end

  def to_msgpack_ext = self.class.library.pack({})
end

PLAIN = { "message" => '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 ' \
                       '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"' }.freeze
STRUCTURED = {
  "remote_host" => "127.0.0.1", "remote_user" => "-", "date" => "10/Oct/2000:13:55:36 -0700",
  "request" => "GET /apache_pb.gif HTTP/1.0", "method" => "GET", "path" => "/apache_pb.gif", "protocol" => "HTTP/1.0",
  "status" => 200, "bytes" => 2326, "referer" => "http://www.example.com/start.html",
  "agent" => "Mozilla/4.08 [en] (Win98; I ;Nav)"
}.freeze
EXTENDED = { "extended" => Extended.new }.freeze

def record(number)
  { "id" => number, "login" => "user#{number}", "name" => "Call me Ishmael", "active" => (number % 3).zero?,
    "score" => number * 1.5, "tags" => %w[a bb ccc], "address" => { "street" => "1 Main St", "city" => "Nantucket" },
    "created_at" => "2026-11-21T07:00:00Z", "bio" => "Some years ago—never mind how long" }
end

def pack_extended(library)
  packer = library::Packer.new
  packer.register_type(0, Extended, :to_msgpack_ext)
  packer.pack(EXTENDED).to_s
end

def unpack_extended(library, message)
  unpacker = library::Unpacker.new
  unpacker.register_type(0, Extended, :from_msgpack_ext)
  unpacker.feed(message)
  unpacker.read
end

RECORDS = Array.new(500) { |number| record(number) }.freeze

# Returns, for each row, one call of the library.
def rows(library)
  Extended.library = library
  plain, structured, extended = library.pack(PLAIN), library.pack(STRUCTURED), pack_extended(library)
  records = library.pack(RECORDS)
  {
    "pack-plain" => -> { library.pack(PLAIN) }, "pack-structured" => -> { library.pack(STRUCTURED) },
    "pack-extended" => -> { pack_extended(library) }, "unpack-plain" => -> { library.unpack(plain) },
    "unpack-structured" => -> { library.unpack(structured) },
    "unpack-extended" => -> { unpack_extended(library, extended) },
    "pack-records" => -> { library.pack(RECORDS) }, "unpack-records" => -> { library.unpack(records) }
  }
end

def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

# Returns the median CPU seconds of one run for each library. The libraries take turns.
def measure(contestants, count, rounds = 11)
  times = contestants.map { [] }
  rounds.times do
    contestants.each_with_index do |(library, body), index|
      Extended.library = library
      GC.start
      start = cpu
      count.times { body.() }
      times[index] << ((cpu - start) / count)
    end
  end
  times.map { |values| Bench.median(values) }
end

def compare
  ours, theirs = rows(OURS), rows(THEIRS)
  ours.to_h do |name, body|
    count = name.end_with?("records") ? 60 : 20_000
    mine, other = measure([[OURS, body], [THEIRS, theirs[name]]], count)
    puts format("%-18s %8.1f ns, msgpack %8.1f ns: x%.2f", name, mine * 1e9, other * 1e9, other / mine)
    [name, { seconds: { offlock: mine, msgpack: other }, ratio: (other / mine).round(2) }]
  end
end

def rss = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i

# Returns the resident memory of a process that decodes 100 KB 20,000 times: after a tenth of them and at the end.
def memory(library)
  reader, writer = IO.pipe
  pid = fork do
    message = library.pack(RECORDS)
    early = nil
    20_000.times do |round|
      library.unpack(message)
      early = rss if round == 2_000
    end
    writer.puts(JSON.generate({ early_rss_kB: early, end_rss_kB: rss }))
  end
  Process.wait(pid)
  JSON.parse(reader.gets)
end

def time_of(threads) = Bench.seconds { threads.each(&:value) }

# Returns the speed of two Ractors as a multiple of that of one: for packing, for unpacking, and for making as many
# objects, which is the upper limit in Ruby.
def ractors
  Warning[:experimental] = false
  message = OURS.pack(RECORDS)
  records = Ractor.make_shareable(Marshal.load(Marshal.dump(RECORDS)))
  { packing: -> { Ractor.new(records) { |records| 2000.times { Offlock::MessagePack.pack(records) } } },
    unpacking: -> { Ractor.new(message) { |message| 1000.times { Offlock::MessagePack.unpack(message) } } },
    making: -> { Ractor.new { 500.times { Array.new(5000) { "abc".dup } } } } }.transform_values { |work| gain(work) }
end

# Returns the speed of two threads or Ractors that `work` starts, as a multiple of that of one.
def gain(work)
  time_of([work.(), work.()])
  Bench.median(Array.new(7) { 2 * time_of([work.()]) / time_of([work.(), work.()]) }).round(2)
end

# Returns the speed of two threads that extract, as a multiple of that of one.
def extraction
  message = OURS.pack(Array.new(20_000) { |number| record(number) })
  gain(-> { Thread.new { 100.times { OURS.extract(message, "name") } } })
end

raise "different answers" unless rows(OURS)["pack-records"].() == rows(THEIRS)["pack-records"].()
raise "different answers" unless OURS.unpack(OURS.pack(RECORDS)) == THEIRS.unpack(THEIRS.pack(RECORDS))

rows = compare
memories = { "unpack 100 KB 20,000 times" => { offlock: memory(OURS), msgpack: memory(THEIRS) } }
gains = ractors.to_h { |work, gain| ["#{work}, two Ractors", { times_one: gain }] }
gains["extracting, two threads"] = { times_one: extraction }
puts memories, gains
Bench.keep(Bench.by_figure(rows) + Bench.by_contestant(memories) + Bench.by_figure(gains), msgpack: THEIRS::VERSION)
