# frozen_string_literal: true

require_relative "test_helper"

# A call that cannot allocate memory raises NoMemoryError, and the program continues.
class MemoryTest < Minitest::Test
  include Texts

  # Helpers for the programs: a stream of 1 GB, whose checksum is never reached, and a call with a limit of so many megabytes
  # above the current use of memory, after which another call must work.
  PRELUDE = <<~'RUBY'
    require "json"
    require "stringio"
    M = Offlock::MessagePack
    Z = Offlock::Zlib

    # A tokenizer.json with so many more tokens.
    def merges(count)
      printable = [*0x21..0x7e, *0xa1..0xac, *0xae..0xff]
      letters = (printable + (0x100..0x143).to_a).map { [_1].pack("U") }
      pairs = letters.product(letters).map(&:join)
      joined = Array.new(count) { pairs[_1 % pairs.size] + pairs[_1 / pairs.size] }
      vocabulary = (letters + pairs + joined).each_with_index.to_h
      merges = pairs.map { _1.chars } + joined.map { [_1[0, 2], _1[2, 2]] }
      JSON.generate({ pre_tokenizer: { type: "ByteLevel", add_prefix_space: false }, decoder: { type: "ByteLevel" },
                      model: { type: "BPE", vocab: vocabulary, merges: } })
    end

    def ranks(count)
      tokens = Array.new(count) { _1 < 256 ? [_1].pack("C") : "token #{_1}" }
      tokens.map.with_index { |token, id| "#{[token].pack("m0")} #{id}\n" }.join
    end

    MODEL = Offlock::Tokenizer.from_bytes(Scenarios::MODEL)

    def bomb(header)
      maker = Z::Deflate.new(6, -15)
      part = maker.deflate("\0" * (1 << 24), Z::FULL_FLUSH)
      header.b + part * 64 + "\x03\0".b + "\0" * 8
    end

    def raises(spare)
      pages = File.read("/proc/self/statm").to_i
      limits = Process.getrlimit(:AS)
      Process.setrlimit(:AS, pages * 4096 + (spare << 20), limits.last)
      begin
        yield
        ended = "no exception"
      rescue NoMemoryError
        ended = "NoMemoryError"
      end
      Process.setrlimit(:AS, *limits)
      Z.inflate(Z.deflate("usual" * 100_000)).bytesize == 500_000 or abort "nothing works any more"
      print ended
    end
  RUBY

  SCENARIOS = File.expand_path("support/scenarios", __dir__)
  ZLIB = 'bomb("\x78\x9c")'
  GZIP = 'bomb("\x1f\x8b\x08" + "\0" * 7)'

  # How many megabytes are left, which is less than the input needs. It must not be 64, which the C library reserves for the
  # memory of a new thread, if it can: then nothing is left, and Ruby 3.3 goes round for ever when it cannot get a page for
  # objects.
  CALLS = {
    "inflate" => [ZLIB, 300, "Z.inflate(input)"],
    "inflate_under_the_lock" => [ZLIB, 300, "Z.inflate(input, release: :never)"],
    "inflate_object" => [ZLIB, 300, "Z::Inflate.new.inflate(input)"],
    "inflate_class_method" => [ZLIB, 300, "Z::Inflate.inflate(input)"],
    "inflate_all" => [ZLIB, 300, "Z.inflate_all([input, input], threads: 2)"],
    "gunzip" => [GZIP, 300, "Z.gunzip(input)"],
    "gunzip_all" => [GZIP, 300, "Z.gunzip_all(input, threads: 2)"],
    "gzip_reader" => [GZIP, 300, "Z::GzipReader.new(StringIO.new(input)).read"],
    "gzip_reader_on_threads" => [GZIP, 300, "Z::GzipReader.new(StringIO.new(input), threads: 2).read"],
    "deflate" => ['"\0" * (100 << 20)', 60, "Z.deflate(input, 0)"],
    "gzip" => ['"\0" * (100 << 20)', 60, "Z.gzip(input, level: 0)"],
    "deflate_all" => ['"\0" * (100 << 20)', 60, "Z.deflate_all([input] * 2, 0, threads: 2)"],
    "zstd_compress" => ["Random.new(1).bytes(100 << 20)", 60, "Offlock::Zstd.compress(input, level: 1)"],
    "zstd_compress_at_a_high_level" => ['"x" * (100 << 20)', 60, "Offlock::Zstd.compress(input, level: 22)"],
    "zstd_compress_stream" => ["Random.new(1).bytes(100 << 20)", 60, "Offlock::Zstd::StreamingCompress.new(level: 1).write(input)"],
    "zstd_dictionary" => ['"x" * (100 << 20)', 60, "Offlock::Zstd::Dictionary.new(input)"],
    "zstd_train" => ['Array.new(100) { "x" * (1 << 20) }', 60, "Offlock::Zstd.train_dict(input, 1000)"],
    "zstd_decompress" => ['Offlock::Zstd.compress("x" * (1 << 20)) * 1000', 300, "Offlock::Zstd.decompress(input)"],
    "zstd_decompress_one_frame" => ['Offlock::Zstd.compress("x" * (600 << 20))', 300, "Offlock::Zstd.decompress(input)"],
    "zstd_decompress_under_the_lock" => ['Offlock::Zstd.compress("x" * (1 << 20)) * 1000', 300,
                                         "Offlock::Zstd.decompress(input, release: :never)"],
    "zstd_decompress_stream" => ['Offlock::Zstd.compress("x" * (1 << 20)) * 1000', 300,
                                 "Offlock::Zstd::StreamingDecompress.new.decompress(input)"],
    "zstd_reader" => ['Offlock::Zstd.compress("x" * (1 << 20)) * 1000', 300,
                      "Offlock::Zstd::StreamReader.new(StringIO.new(input)).read"],
    "unpack" => ['"\xdd".b + [30_000_000].pack("N") + "\xc0".b * 30_000_000', 60, "M.unpack(input)"],
    "unpack_all" => ['"\xdd".b + [30_000_000].pack("N") + "\xc0".b * 30_000_000', 60, "M.unpack_all([input] * 2)"],
    "unpacker" => ['"\xdd".b + [30_000_000].pack("N") + "\xc0".b * 30_000_000', 60,
                   "M::Unpacker.new.feed(input).feed(input).read"],
    "encode" => ['"\x01\x02\x03" * 8_000_000', 60, "Offlock::Tiktoken.get_encoding(:cl100k_base).encode(input)"],
    "encode_batch" => ['"\x01\x02\x03" * 8_000_000', 60,
                       "Offlock::Tiktoken.get_encoding(:cl100k_base).encode_batch([input] * 2, threads: 2)"],
    "decode" => ["[12].pack('L') * 40_000_000", 60, "Offlock::Tiktoken.get_encoding(:cl100k_base).decode(input)"],
    "extract" => ['M.pack([{ "a" => "b" }] * 3_000_000)', 60, 'M.extract(input, "a")'],
    "JSON lines" => ['"{\"a\":\"b\"}\n" * 3_000_000', 60, 'Offlock::JSONL.extract(input, "a")'],
    "view" => ['M.pack([{ "a" => "b" }] * 3_000_000)', 60, "M.view(input).build"],
    "pack" => ['["text" * 20] * 2_000_000', 60, "M.pack(input)"],
    "gzip_lines" => [GZIP, 300, "Z::GzipReader.new(StringIO.new(input)).readlines"],
    "inflate_in_pieces" => [ZLIB, 300, "Z::Inflate.new.then { |inflater| input.bytes.each_slice(5000).map { " \
                                       "inflater.inflate(_1.pack('C*')) } }"],
    "count_many" => ['Array.new(3_000_000) { "" }', 20,
                     "Offlock::Tiktoken.get_encoding(:cl100k_base).count_batch(input)"],
    "model_encode" => ['"\x01\x02\x03" * 8_000_000', 60, "MODEL.encode(input)"],
    "model_encode_with_offsets" => ['"\x01\x02\x03" * 2_000_000', 60, "MODEL.encode_with_offsets(input)"],
    "model_encode_batch" => ['"\x01\x02\x03" * 8_000_000', 60, "MODEL.encode_batch([input] * 2, threads: 2)"],
    "model_decode" => ["[12].pack('L') * 40_000_000", 60, "MODEL.decode(input)"],
    # The C library maps each small block by itself once its heap cannot grow, so memory fills slowly.
    "model_load" => ["merges(60_000)", 4, "Offlock::Tokenizer.from_bytes(input)"],
    "model_load_of_ranks" => ["ranks(1_000_000)", 60, "Offlock::Tokenizer.from_bytes(input, pattern: '.')"],
    "lines" => ["\"a\\n\" * 10_000_000", 60, "Offlock::Strings.lines(input)"],
    "split" => ["\"a,\" * 10_000_000", 60, "Offlock::Strings.split(input, ',')"],
    "from_offsets" => ["\"a,\" * 10_000_000", 60, "Offlock::Strings.from_offsets(input, (0..5_000_000).to_a.pack('q*'))"]
  }.freeze

  def setup
    skip "limits are read and set as on Linux" unless RUBY_PLATFORM.include?("linux")
  end

  CALLS.each do |name, (input, spare, call)|
    define_method(:"test_#{name}") do
      output, status = run_ruby(<<~RUBY)
        require #{SCENARIOS.inspect}
        #{PRELUDE}
        input = #{input}
        Offlock::Tiktoken.get_encoding(:cl100k_base).encode("loaded before")
        raises(#{spare}) { #{call} }
      RUBY
      assert_equal ["NoMemoryError", true], [output, status.success?]
    end
  end

  # Ruby handles no interrupts while a NoMemoryError is pending. One that was never raised stayed pending for ever.
  def test_interrupts_are_handled_after_memory_ran_out_for_a_guess
    output, = run_ruby(<<~'RUBY', timeout: 20)
      # The file claims to contain 2 GB and contains 3 MB.
      packed = Offlock::Zlib.gzip(Random.new(1).bytes(3 << 20), level: 1)
      packed[-4, 4] = [2_000_000_000].pack("V")
      Process.setrlimit(:AS, 900 << 20)
      main = Thread.current
      Thread.new { sleep(0.2) && main.raise(Interrupt, "stopped") }
      begin
        loop do
          Offlock::Zlib.gunzip(packed)
        rescue Offlock::Zlib::GzipFile::LengthError
          nil
        end
      rescue Interrupt => e
        print e.message
      end
    RUBY
    assert_equal "stopped", output
  end
end
