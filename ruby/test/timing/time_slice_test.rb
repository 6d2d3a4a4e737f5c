# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "../test_helper"

# A thread that loops over small calls releases the lock about every millisecond, not after Ruby's 100 ms.
class TimeSliceTest < Minitest::Test
  include Texts

  SOURCES = File.expand_path("../../ext/offlock/src", __dir__)
  SIZES = [16, 1500].freeze
  Z = Offlock::Zlib
  M = Offlock::MessagePack
  S = Offlock::Strings
  P = Offlock::Zstd

  # For each operation in the sources: its calls, each made from a text.
  CALLS = {
    "tokens.encode" => [->(text, o200k) { -> { o200k.encode(text) } }],
    "tokens.count" => [->(text, o200k) { -> { o200k.count(text) } }],
    "tokens.truncate" => [->(text, o200k) { -> { o200k.truncate(text, 5) } }],
    "tokens.chunks" => [->(text, o200k) { -> { o200k.chunks(text, 20) } }],
    "tokens.stream" => [
      lambda do |text, o200k|
        stream = o200k.stream
        -> { stream.feed(text) }
      end,
      ->(text, o200k) { -> { (o200k.stream << text).total } },
      ->(text, o200k) { -> { (o200k.stream << text).finish } }
    ],
    "tokens.encode_batch" => [->(text, o200k) { -> { o200k.encode_batch([text]) } }],
    "tokens.count_batch" => [->(text, o200k) { -> { o200k.count_batch([text]) } }],
    "tokens.decode" => [lambda do |text, o200k|
      tokens = o200k.encode(text)
      -> { o200k.decode(tokens) }
    end],
    "zlib.deflate" => [
      ->(text, _) { -> { Z.deflate(text) } },
      ->(text, _) { -> { Z.gzip(text) } },
      ->(text, _) { -> { Z::Deflate.new.deflate(text, Z::FINISH) } }
    ],
    "zlib.inflate" => [
      ->(text, _) { Zlib.deflate(text).then { |data| -> { Z.inflate(data) } } },
      ->(text, _) { Zlib.gzip(text).then { |data| -> { Z.gunzip(data) } } },
      ->(text, _) { Zlib.gzip(text).then { |data| -> { Z::GzipReader.new(StringIO.new(data)).read } } },
      # Decodes nothing.
      ->(text, _) { Zlib.gzip(text).then { |data| -> { Z::GzipReader.new(StringIO.new(data)) } } }
    ],
    "zstd.compress" => [
      ->(text, _) { -> { P.compress(text) } },
      ->(text, _) { -> { P.compress(text, level: 1, checksum_flag: true) } },
      ->(text, _) { P::StreamingCompress.new.then { |stream| -> { stream.compress(text) } } },
      ->(text, _) { P::StreamingCompress.new.then { |stream| -> { (stream << text).flush } } },
      ->(text, _) { P::StreamingCompress.new.then { |stream| -> { (stream << text).finish } } },
      ->(text, _) { -> { P::StreamWriter.new(StringIO.new(String.new)).tap { _1.write(text) }.finish } }
    ],
    "zstd.decompress" => [
      ->(text, _) { P.compress(text).then { |data| -> { P.decompress(data) } } },
      ->(text, _) { P.compress(text).then { |data| P::StreamingDecompress.new.then { |stream| -> { stream.decompress(data) } } } },
      ->(text, _) { P.compress(text).then { |data| -> { P::StreamReader.new(StringIO.new(data)).read } } }
    ],
    "zstd.frames" => [->(text, _) { P.compress(text).then { |data| -> { P.frame_size(data) } } }],
    "zlib.checksum" => [->(text, _) { -> { Z.crc32(text) } }, ->(text, _) { -> { Z.adler32(text) } }],
    "msgpack.encode" => [
      ->(text, _) { text.chars.then { |value| -> { M.pack(value) } } },
      ->(text, _) { text.chars.then { |value| -> { M::DefaultFactory.dump(value) } } },
      *{
        write: [["text"]], write_string: ["text"], write_bin: ["text".b], write_array: [[1]], write_hash: [{ 1 => 2 }],
        write_symbol: [:text], write_int: [1], write_float: [1.5], write_float32: [1.5], write_nil: [], write_true: [],
        write_false: [], write_array_header: [1], write_map_header: [1], write_bin_header: [1], write_ext: [1, "text"],
        write_extension: [M::ExtensionValue.new(1, "text")]
      }.map { |name, arguments| ->(*) { M::Packer.new.then { |packer| -> { packer.public_send(name, *arguments).reset } } } }
    ],
    "msgpack.decode" => [
      ->(text, _) { M.pack(text.chars).then { |packed| -> { M.unpack(packed) } } },
      ->(text, _) { M.pack(text.chars).then { |packed| -> { M.unpack_all([packed]) } } },
      ->(text, _) { M.pack(text.chars).then { |packed| -> { M::Unpacker.new.feed(packed).read } } },
      ->(text, _) { M.pack(text.chars).then { |packed| -> { M::Unpacker.new.feed(packed).skip } } },
      ->(*) { M::Unpacker.new.then { |unpacker| -> { unpacker.feed("\x91").read_array_header } } },
      ->(*) { M::Unpacker.new.then { |unpacker| -> { unpacker.feed("\x81").read_map_header } } },
      # One call, which yields all messages.
      ->(text, _) { (M.pack([text]) * 1000).then { |packed| -> { M::Unpacker.new.feed_each(packed) { nil } } } }
    ],
    "msgpack.extract" => [->(text, _) { M.pack([{ "a" => text }]).then { |packed| -> { M.extract(packed, "a") } } }],
    "jsonl.extract" => [
      ->(text, _) { ("{\"a\":1}\n" * (text.bytesize / 8)).then { |lines| -> { Offlock::JSONL.extract(lines, "a") } } }
    ],
    "strings.lines" => [->(text, _) { -> { S.lines(text) } }],
    "strings.split" => [->(text, _) { -> { S.split(text, " ") } }],
    "strings.from_offsets" => [->(text, _) { -> { S.from_offsets(text, [0, 1, 2]) } }]
  }.freeze

  # They load a whole vocabulary, read files or learn from many samples, and release the lock for input of any size.
  OTHERS = %w[tokens.load pipeline.find pipeline.count pipeline.write pipeline.next pipeline.close zstd.train].freeze

  def test_every_operation_has_its_calls
    declared = Dir["#{SOURCES}/**/*.rs"].flat_map { |file| File.read(file).scan(/Operation \{\s*name: "([a-z_.]+)"/) }
    assert_empty declared.flatten.reject { |name| name.start_with?("test.") } - CALLS.keys - OTHERS
  end

  # Repeats the block in a thread while +work+ runs here.
  def beside(work, &)
    thread = Thread.new { loop(&) }
    work.call
  ensure
    thread.kill.join
  end

  def repeat(call, seconds)
    calls = 0
    stop = clock + seconds
    while clock < stop
      10.times { call.call }
      calls += 10
    end
    calls
  end

  # Returns the median delay in seconds with which a thread wakes up beside one that loops over +call+. Where garbage is
  # collected meanwhile, which takes long after many other tests, it waits for that: such delays count only if there are no
  # others, as beside a call that makes many objects.
  def lateness_beside(call)
    late, collecting = [], []
    beside(-> { repeat(call, 0.15) }) do
      collections = GC.count
      before = clock
      sleep(0.001)
      (GC.count == collections ? late : collecting) << (clock - before - 0.001)
    end
    late = collecting if late.empty?
    late.sort[late.size / 2] || 0.15
  end

  CALLS.each do |operation, calls|
    SIZES.each do |size|
      define_method(:"test_others_do_not_wait_for_the_time_slice_beside_#{operation}_of_#{size}") do
        calls.each do |make|
          call = make.call(text_of(size).byteslice(0, size).scrub(""), o200k)
          # The best of ten, because another process may have used the processor.
          assert(Array.new(10).any? { lateness_beside(call) < 0.002 })
        end
      end
    end
  end

  def test_a_caller_can_keep_the_lock
    assert_operator lateness_beside(-> { o200k.encode("a few words", release: :never) }), :>, 0.01
  end

  # A thread that yielded every millisecond to one that computes for 100 ms would reach a hundredth. The limit leaves room for
  # what else runs on the machine; `bench/region` measures the share.
  def test_a_thread_that_yields_keeps_its_share_beside_one_that_computes
    shares = Array.new(3) do
      keeps, yields = %i[never auto].map do |release|
        calls = nil
        beside(-> { calls = repeat(-> { o200k.encode("a few words", release:) }, 0.8) }) { 1000.times { nil } }
        calls
      end
      yields.fdiv(keeps)
    end
    assert_operator shares.sort[1], :>, 0.35, shares.to_s
  end
end
