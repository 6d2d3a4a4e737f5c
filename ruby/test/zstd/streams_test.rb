# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/zstd_original"

# Streams: any cut of the input gives the result of the whole, in any thread, Ractor, fiber or child process.
class ZstdStreamsTest < Minitest::Test
  include Texts

  Z = Offlock::Zstd
  PLAIN = Array.new(40_000) { |number| "word#{number * 7919 % 1009} " }.join.freeze

  def pieces(string, random, most)
    at = 0
    made = []
    while at < string.bytesize
      size = random.rand(most)
      made << string.byteslice(at, size)
      at += size
    end
    made
  end

  def test_any_cut_of_the_input
    random = Random.new(4)
    [1, 3, 9, 13].each do |level|
      stream = Z::StreamingCompress.new(level:, checksum_flag: true)
      packed = String.new
      expected = String.new
      pieces(PLAIN, random, 20_000).each do |piece|
        case random.rand(6)
        when 0 then packed << stream.flush
        when 1 then packed << stream.finish
        end
        random.rand < 0.5 ? packed << stream.compress(piece) : stream << piece
        expected << piece
      end
      packed << stream.finish
      assert_equal expected, Z.decompress(packed).force_encoding("UTF-8")
      assert_equal expected.b, ZstdOriginal.decompress(packed) if ZstdOriginal.available?
      assert_decompressed expected, packed, random
    end
  end

  def assert_decompressed(expected, packed, random)
    stream = Z::StreamingDecompress.new
    plain = pieces(packed, random, 300).map do |piece|
      most = [nil, random.rand(1..5000)].sample(random:)
      made = stream.decompress(piece, max_length: most)
      assert_operator made.bytesize, :<=, most if most
      made << stream.decompress("", max_length: 1 << 20) until stream.needs_input?
      made
    end
    assert_equal expected.b, plain.join
    assert_predicate stream, :finished?
  end

  def test_a_flush_has_all_input
    stream = Z::StreamingCompress.new
    reader = Z::StreamingDecompress.new
    ["one ", "two ", PLAIN, ""].each do |piece|
      stream << piece
      assert_equal piece.b, reader.decompress(stream.flush)
      refute_predicate reader, :finished?
    end
    assert_equal "", reader.decompress(stream.finish)
    assert_predicate reader, :finished?
  end

  def test_it_writes_like_an_io
    stream = Z::StreamingCompress.new
    stream.print("a", 1)
    stream.puts(["b", :c])
    stream.printf("%03d", 7)
    assert_equal 5, stream.write("two", "é")
    assert_equal "a1b\nc\n007twoé", Z.decompress(stream.finish).force_encoding("UTF-8")
  end

  def test_the_position_after_a_frame
    packed = Z.compress(PLAIN)
    stream = Z::StreamingDecompress.new
    plain, position = stream.decompress_with_pos("#{packed}rest".b)
    assert_equal [PLAIN.b, packed.bytesize], [plain, position]
    assert_predicate stream, :finished?
    plain, position = stream.decompress_with_pos(packed[0, 100])
    assert_equal 100, position
    assert_equal PLAIN.b, plain + stream.decompress_with_pos(packed[100..]).first
    assert_equal ["", 0], stream.decompress_with_pos("")
  end

  def test_a_pledge_is_in_the_header_and_is_kept
    stream = Z::StreamingCompress.new
    stream.pledged_size = 5
    assert_equal 5, Z.frame_info(stream.compress("ab") << stream.compress("cde") << stream.finish).decompressed_size
    stream.pledged_size = 5
    stream << "ab"
    assert_match(/Src size is incorrect/, assert_raises(Z::Error) { stream.finish }.message)
    stream << "x"
    assert_raises(Z::Error) { stream.pledged_size = 1 }
    assert_equal "x", Z.decompress(stream.finish)
  end

  def test_damage_raises_and_another_frame_begins
    stream = Z::StreamingDecompress.new
    assert_equal "", stream.decompress(Z.compress(PLAIN)[0, 50])[0, 0]
    assert_raises(Z::Error) { stream.decompress("nonsense" * 50_000) }
    assert_equal "x", stream.decompress(Z.compress("x"))
  end

  def test_max_output_counts_all_calls
    stream = Z::StreamingDecompress.new(max_output: 10)
    assert_equal "12345", stream.decompress(Z.compress("12345"))
    assert_equal "67890", stream.decompress(Z.compress("67890"))
    2.times { assert_raises(Z::OutputLimitError) { stream.decompress(Z.compress("x")) } }
  end

  def test_dictionaries
    dict = Z::Dictionary.new(PLAIN[0, 5000])
    stream = Z::StreamingCompress.new(level: 7, dict:)
    packed = stream.compress(PLAIN[0, 3000]) << stream.finish << stream.compress("x") << stream.finish
    assert_operator packed.bytesize, :<, 100
    assert_equal "#{PLAIN[0, 3000]}x", Z::StreamingDecompress.new(dict: PLAIN[0, 5000]).decompress(packed)
    assert_equal "#{PLAIN[0, 3000]}x", Z::StreamingDecompress.new(dict:).decompress(packed)
  end

  def test_wrong_use
    [Z::StreamingCompress, Z::StreamingDecompress].each do |kind|
      assert_raises(TypeError) { kind.new.dup }
      assert_raises(TypeError) { kind.new.send(:initialize) }
      assert_raises(TypeError) { kind.allocate.then { _1.respond_to?(:flush) ? _1.flush : _1.finished? } }
    end
    stream = Z::StreamingCompress.new
    assert_raises(TypeError) { stream.compress(1) }
    assert_raises(TypeError) { stream.write("taken by no one", nil) }
    assert_equal "", Z.decompress(stream.finish)
    assert_raises(ArgumentError) { Z::StreamingCompress.new(speed: 1) }
  end

  def test_threads_take_turns
    stream = Z::StreamingCompress.new(level: 1)
    threads = Array.new(4) { |thread| Thread.new { 50.times { stream.write("#{thread} " * 20_000) } } }
    threads.each(&:join)
    plain = Z.decompress(stream.finish)
    assert_equal 200, plain.scan(/(?:0 )+|(?:1 )+|(?:2 )+|(?:3 )+/).sum { _1.bytesize / 40_000 }
    assert_equal 8_000_000, plain.bytesize
  end

  def test_ractors
    before, Warning[:experimental] = Warning[:experimental], false
    dict = Z.train_dict(Array.new(2000) { |n| "{\"id\": #{n}, \"name\": \"name #{n * 7919 % 100}\"}" }, 4000)
    ractors = Array.new(3) do
      Ractor.new(PLAIN, dict) do |plain, dict|
        stream = Offlock::Zstd::StreamingCompress.new(dict:)
        stream << plain
        packed = stream.finish
        damaged = begin
          Offlock::Zstd.decompress("nonsense")
        rescue Offlock::Zstd::Error => e
          e.class
        end
        [Offlock::Zstd.decompress(packed, dict:) == plain.b, Offlock::Zstd.compress("x", dict:).bytesize, damaged]
      end
    end
    assert_equal [[true, Z.compress("x", dict:).bytesize, Z::Error]] * 3, ractors.map(&:value)
  ensure
    Warning[:experimental] = before
  end

  def test_memory_is_reported_to_the_collector
    stream = Z::StreamingCompress.new(level: 9)
    stream << PLAIN
    require "objspace"
    assert_operator ObjectSpace.memsize_of(stream), :>, 1_000_000
    before = GC.count
    500.times { Z::StreamingCompress.new(level: 9) << PLAIN[0, 1000] }
    assert_operator GC.count, :>, before
  end

  # In the child of a fork a stream goes on, or says clearly why it cannot.
  FORKS = <<~'RUBY'
    Z = Offlock::Zstd
    plain = Array.new(120_000) { |number| "word#{number * 7919 % 1009} " }.join
    def child
      read, write = IO.pipe
      pid = fork do
        write.write(begin
          yield
        rescue Z::Error => e
          e.message
        end)
        write.close
        exit!
      end
      write.close
      Process.wait(pid)
      read.read
    end
    fresh = -> { Z.decompress(Z::StreamingCompress.new(level: 19).then { |s| s.compress("new") << s.finish }) }
    idle = Z::StreamingCompress.new
    begun = idle.compress(plain) << idle.flush
    puts child { Z.decompress(begun + idle.finish) == plain.b ? "goes on " + fresh.() : "wrong" }
    puts Z.decompress(begun + idle.finish) == plain.b
    # At work on the thread of another Ruby thread.
    busy = Z::StreamingCompress.new(level: 22)
    thread = Thread.new { busy.compress(plain) }
    sleep(0.05)
    puts child { busy.finish }, child { fresh.() }
    thread.join
    # With threads of its own.
    workers = Z::StreamingCompress.new(nb_workers: 2)
    begun = workers.compress(plain)
    puts child { workers.finish.then { "finished" } }
    puts Z.decompress(begun + workers.finish) == plain.b
    # Interrupted, and left to its work.
    left = Z::StreamingCompress.new(level: 22)
    thread = Thread.new { left.compress(plain) }
    sleep(0.05)
    thread.kill.join
    puts child { left.finish.then { "finished" } }
    puts Z.decompress(left.finish) == plain.b
  RUBY

  def test_forks
    output, status = run_ruby(FORKS)
    assert_equal <<~TEXT, output
      goes on new
      true
      the stream was at work on another thread when the process forked
      new
      the stream was at work on another thread when the process forked
      true
      the stream was at work on another thread when the process forked
      true
    TEXT
    assert_predicate status, :success?
  end
end
