# frozen_string_literal: true

require "rbconfig"
require_relative "test_helper"

# The signatures in sig are right: a program that uses the whole interface runs with every call checked.
class SignaturesTest < Minitest::Test
  include Texts

  SIGNATURES = File.expand_path("../sig", __dir__)
  CHECKED = {
    "RBS_TEST_TARGET" => "Offlock::*", "RBS_TEST_OPT" => "-I #{SIGNATURES}", "RBS_TEST_RAISE" => "true",
    "RBS_TEST_LOGLEVEL" => "error"
  }.freeze

  def setup
    require "rbs"
  rescue LoadError
    skip "needs the gem rbs"
  end

  def run_checked(program)
    before = ENV.to_h
    ENV.update(CHECKED)
    run_ruby(program, libraries: ["rbs/test/setup", "offlock"])
  ensure
    ENV.replace(before)
  end

  def test_message_pack_is_as_signed
    output, status = run_checked(<<~RUBY)
      require "stringio"
      library = Offlock::MessagePack
      message = library.pack([{ "a" => 1, "b" => nil }])
      library.load(library.dump({ a: 1.5 }), symbolize_keys: true)
      library.extract(message, "b", release: :always)
      library.unpack_all([message])
      view = library.view(message)
      [view.size, view.array?, view.build, view.inspect, view[0].keys, view.dig(0, "a"), view.each { |item| item }]
      packer = library::Packer.new
      packer.write_array_header(1).write(:x).write_ext(1, "y").write_nil.flush
      [packer.to_s, packer.size, packer.empty?, packer.buffer.to_a, packer.write_to(StringIO.new), packer.reset]
      unpacker = library::Unpacker.new(symbolize_keys: true)
      unpacker.feed(message).each { |object| object }
      unpacker.feed_each(message) { |object| object }
      [unpacker.symbolize_keys?, unpacker.registered_types, unpacker.feed(message).read_array_header, unpacker.reset]
      factory = library::Factory.new
      factory.register_type(-1, Time, packer: library::Time::Packer, unpacker: library::Time::Unpacker)
      factory.load(factory.dump(Time.at(1)))
      [factory.registered_types, factory.type_registered?(Time), factory.pool(2).load(message), factory.freeze.dup]
      library::Timestamp.from_msgpack_ext(library::Timestamp.new(1, 2).to_msgpack_ext).sec
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_the_interface_is_as_signed
    output, status = run_checked(<<~RUBY)
      tiktoken = Offlock::Tiktoken
      tiktoken.list_encoding_names
      tiktoken.num_tokens_from_messages([{ "role" => "user", content: "Hi" }], :"gpt-4o", tools: [])
      tiktoken.list_model_names
      tiktoken.get_encoding("nonesuch")
      tiktoken.encoding_for_model("nonesuch")
      encoding = tiktoken.encoding_for_model(:"gpt-4o")
      tiktoken::Encoding.for_name_cached("gpt2").inspect
      tokens = encoding.encode("a<|endoftext|>", allowed_special: ["<|endoftext|>"], release: :always)
      packed = encoding.encode("hello", packed: true, allowed_special: :all)
      encoding.encode_ordinary("hello", release: :never)
      encoding.encode_ordinary("hello", packed: true)
      encoding.encode_with_special_tokens("hello")
      encoding.encode_with_special_tokens("hello", packed: true)
      encoding.encode_batch(["a", "b"], threads: 2)
      encoding.encode_batch(["a", "b"], packed: true, threads: nil, allowed_special: nil)
      encoding.count("hello")
      encoding.count_batch(["a", "b"], threads: 1, allowed_special: :all, release: :auto)
      encoding.truncate("hello world", 1)
      encoding.chunks("hello world", 1)
      encoding.chunks("hello world", 2, overlap: 1, boundary: :word, release: :never)
      stream = encoding.stream(allowed_special: :all, limit: 100)
      stream << "hello"
      [stream.feed("a", release: :always), stream.feed("b", packed: true), stream.count("c"), stream.final_count, stream.pending]
      [stream.total(release: :never), stream.inspect, stream.finish, encoding.stream.finish(packed: true)]
      encoding.decode(tokens)
      encoding.decode(packed, errors: :replace)
      encoding.decode_bytes(tokens, release: :always)
      encoding.encode_single_token("hello")
      encoding.decode_single_token_bytes(1)
      [encoding.name, encoding.n_vocab, encoding.max_token_value, encoding.eot_token, encoding.special_tokens]
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_json_lines_are_as_signed
    output, status = run_checked(<<~RUBY)
      jsonl = Offlock::JSONL
      jsonl.extract('{"a":1}', :a, max_doc_bytes: 10, release: :always)
      jsonl.extract('{"a":1.5,"b":{"c":true}}', ["a", [:b, "c"]])
      begin
        jsonl.extract("{", "a")
      rescue jsonl::DecodeError => e
        [e.line, e.offset]
      end
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_the_calls_of_the_gem_tokenizers_are_as_signed
    scenarios = File.expand_path("support/scenarios", __dir__)
    output, status = run_checked(<<~RUBY)
      require #{scenarios.inspect}
      ["the gem's calls for a tokenizer", "a tokenizer.json in a folder"].each { |name| Scenarios::TABLE.fetch(name).call(3) }
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_the_interface_of_strings_is_as_signed
    output, status = run_checked(<<~RUBY)
      strings = Offlock::Strings
      strings.lines("a\\nb", chomp: true, release: :always)
      strings.lines("a\\nb".encode("UTF-16LE"))
      strings.split("a,b", ",")
      strings.from_offsets("ab", [0, 1, 2], release: :never)
      strings.compact(strings.from_offsets("ab", [0, 2].pack("q*")))
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_the_interface_of_the_lock_is_as_signed
    output, status = run_checked(<<~RUBY)
      require "tmpdir"
      require "pathname"
      lock = Offlock::Lock
      Dir.mktmpdir do |folder|
        lock.trace("\#{folder}/a.offlock") { |trace| trace.running? }
        lock.trace(Pathname("\#{folder}/b.offlock"), limit: 10_000) { 1 }
        lock.start("\#{folder}/c.offlock", limit: nil)
        lock.start("\#{folder}/d.offlock")
        lock.stop.then { |stats| [stats.events, stats.lost, stats.bytes] }
        lock.stop
        trace = lock::Trace.new
        trace.stop
        trace.summary.to_h
        lock::Trace.from_environment
        Offlock::GvlTracing.start("\#{folder}/e.json", os_threads_view_enabled: true)
        Offlock::GvlTracing.stop
        Offlock::GvlTracing.start("\#{folder}/f.json") { 1 }
      end
      summary = lock.measure { lock.mark("x") { 1 } }
      [summary.to_s, summary.to_json, [summary].to_json]
      [lock::GlobalTimer, lock::LocalTimer, lock::WaitingThreads].each do |metric|
        [metric.enable, metric.enabled?, metric.disable, metric.monotonic_time] unless metric == lock::WaitingThreads
        metric.reset
      end
      [lock::GlobalTimer.acquisitions, lock::GlobalTimer.histogram, lock::WaitingThreads.count]
      timer = lock::LocalTimer.for(Thread.current)
      [timer.monotonic_time, timer.acquisitions, timer.releases, timer.histogram, timer.reset]
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_zlib_is_as_signed
    output, status = run_checked(<<~RUBY)
      zlib = Offlock::Zlib
      packed = zlib.deflate("lock " * 100, 6, progress: ->(done, total) { done + total }, release: :auto)
      zlib.inflate(packed, max_output: 500, release: :never)
      zlib.inflate(packed) { |chunk| chunk.bytesize }
      zlib.gunzip(zlib.gzip("lock", level: 9), max_output: nil)
      zlib.gunzip_all(zlib.gzip("lock") * 2, threads: 2)
      zlib.inflate_all(zlib.deflate_all(["a", "b"], 1, threads: 2), max_output: 10)
      zlib.crc32_combine(zlib.crc32("a"), zlib.crc32("b", 0), 1) + zlib.adler32_combine(zlib.adler32, 1, 0)
      stream = zlib::Deflate.new(6, 15)
      made = (stream << "a").deflate("b", zlib::SYNC_FLUSH) + stream.flush + stream.finish
      [stream.total_in, stream.total_out, stream.avail_in, stream.avail_out, stream.adler, stream.finished?]
      [stream.reset, stream.params(1, 0), stream.close, stream.closed?]
      reader = zlib::Inflate.new(max_output: 10)
      reader.add_dictionary("none")
      reader.inflate(made, buffer: +"")
      reader.close
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_zstd_is_as_signed
    output, status = run_checked(<<~RUBY)
      require "stringio"
      require #{File.expand_path("support/scenarios", __dir__).inspect}
      Scenarios::TABLE.each { |name, scenario| scenario.call(3) if name.include?("Zstandard") }
      print "done"
    RUBY
    assert_equal ["done", true], [output, status.success?]
  end

  def test_calls_are_really_checked
    output, = run_checked(<<~RUBY)
      Offlock::Tiktoken.get_encoding(:gpt2).encode("x", release: "always")
    RUBY
    assert_match(/RBS::Test::Tester::TypeError.*release/m, output)
  end
end
