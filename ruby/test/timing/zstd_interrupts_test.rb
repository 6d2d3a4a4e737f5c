# frozen_string_literal: true

require "fileutils"
require "stringio"
require "timeout"
require "tmpdir"
require_relative "../test_helper"

# Interrupted calls end promptly, and streams lose no byte.
class ZstdInterruptsTest < Minitest::Test
  include Texts

  Z = Offlock::Zstd
  PLAIN = Array.new(60_000) { |number| "word#{number * 7919 % 1009} " }.join.freeze

  class Alarm < RuntimeError
  end

  CALLS = {
    compress: ->(text) { Z.compress(text) },
    compress_fast: ->(text) { Z.compress(text, level: -7) },
    compress_thoroughly: ->(text) { Z.compress(text, level: 9) },
    compress_best: ->(text) { Z.compress(text, level: 22) },
    compress_on_threads: ->(text) { Z.compress(text, level: 19, nb_workers: 2) },
    compress_with_long_distances: ->(text) { Z.compress(text, enable_long_distance_matching: true) },
    compress_under_the_lock: ->(text) { Z.compress(text, release: :never) },
    stream: ->(text) { Z::StreamingCompress.new.then { |stream| stream.compress(text) && stream.finish } },
    stream_best: ->(text) { Z::StreamingCompress.new(level: 22).compress(text) },
    writer: ->(text) { Z::StreamWriter.new(StringIO.new(String.new)).write(text) },
    decompress: ->(text) { Z.decompress(packed(text)) },
    decompress_stream: ->(text) { Z::StreamingDecompress.new.decompress(packed(text)) },
    reader: ->(text) { Z::StreamReader.new(StringIO.new(packed(text))).read },
    train: ->(text) { Z.train_dict(Array.new(400_000) { |at| text.byteslice(at * 100, 100) }, 100_000) }
  }.freeze

  def self.packed(text) = @packed ||= Z.compress(text, level: 1) * 8

  def self.text = @text ||= Random.new(1).bytes(500_000).unpack1("H*") * 400

  CALLS.each do |name, call|
    define_method(:"test_#{name}_ends_within_50_ms") do
      self.class.packed(self.class.text)
      # The machine may be busy, so the quickest of several calls counts.
      delays = Array.new(6) do
        break [0] if @quick

        thread = Thread.new { loop { self.class.instance_exec(self.class.text, &call) } }
        thread.report_on_exception = false
        sleep(0.05 + (rand * 0.1))
        sent = clock
        thread.raise(Alarm)
        assert_raises(Alarm) { thread.join }
        (clock - sent).tap { |delay| @quick = delay < 0.03 }
      end
      assert_operator delays.min, :<, 0.05
    end
  end

  # Calls the block with each input in a thread that is interrupted at random moments; a call that was interrupted is finished by
  # one without input. Returns the results.
  def interrupted(inputs, random, longest)
    results = []
    interrupts = 0
    inputs.each do |input|
      count = results.size
      while results.size == count
        done = false
        worker = Thread.new do
          Thread.handle_interrupt(Alarm => :never) do
            # Only the call itself can be interrupted; its result is stored before another interrupt.
            results.push(Thread.handle_interrupt(Alarm => :on_blocking) { yield input })
          end
          done = true
        rescue Alarm
          interrupts += 1
        end
        sleep(random.rand * longest * (1 + (interrupts / 5.0)))
        worker.raise(Alarm) unless done
        worker.join
        input = "" if results.size == count
      end
    end
    [results, interrupts]
  end

  def test_interrupted_compression_loses_no_byte
    random = Random.new(6)
    total = 0
    [1, 3, 9, 12, 19].each do |level|
      # Some of it does not compress: its output takes long to copy.
      times = { 1 => 100, 3 => 80, 9 => 10 }.fetch(level, 1)
      plain = (PLAIN * times).b + random.bytes([times, 10].min * 600_000)
      stream = Z::StreamingCompress.new(level:)
      half = plain.bytesize / 2
      inputs = [plain[0, half], plain[half..], "the end"]
      results, interrupts = interrupted(inputs, random, 0.02 * [1, level - 8].max) { |data| stream.compress(data) }
      total += interrupts
      assert_equal "#{plain}the end".b, Z.decompress(results.join << stream.finish), level
    end
    assert_operator total, :>, 0
  end

  def test_an_interrupted_flush_is_finished_by_the_next
    random = Random.new(7)
    plain = random.bytes(20 << 20)
    packed = String.new
    stream = Z::StreamingCompress.new(level: 1)
    4.times do
      stream << plain
      results, = interrupted([:flush], random, 0.004) { stream.flush }
      packed << results.join
    end
    results, = interrupted([:finish], random, 0.004) { stream.finish }
    packed << results.join
    assert_equal plain * 4, Z.decompress(packed)
    assert_equal packed.bytesize, Z.frame_size(packed)
  end

  def test_a_call_after_an_interrupted_one_finishes_it_first
    plain = Random.new(3).bytes(40 << 20)
    [3, 13].each do |level|
      stream = Z::StreamingCompress.new(level:)
      thread = Thread.new { stream.compress(plain) }
      thread.report_on_exception = false
      sleep(0.02)
      thread.kill.join
      stream << "more"
      assert_equal "#{plain}more".b, Z.decompress(stream.finish), level
    end
  end

  def test_interrupted_decompression_loses_no_byte
    random = Random.new(8)
    plain = (PLAIN * 60).b + random.bytes(10 << 20)
    packed = Z.compress(plain, level: 1)
    total = 0
    5.times do
      stream = Z::StreamingDecompress.new
      half = packed.bytesize / 2
      results, interrupts = interrupted([packed[0, half], packed[half..]], random, 0.02) { |data| stream.decompress(data) }
      total += interrupts
      assert_equal plain, results.join
      assert_predicate stream, :finished?
    end
    assert_operator total, :>, 0
  end

  # Ruby's own IO may lose bytes of an interrupted write, so these are written to memory.
  def test_interrupted_files_lose_no_byte
    random = Random.new(9)
    text = Array.new(300_000) { |number| "line #{number} #{number * 7919 % 1009}\n" }.join
    io = StringIO.new(String.new)
    file = Z::StreamWriter.new(io)
    results, = interrupted([text] * 4, random, 0.02) { |data| file.write(data) }
    assert_equal 4, results.size
    file.finish
    path = File.join(Dir.tmpdir, "offlock-#{Process.pid}.zst")
    File.binwrite(path, io.string)
    assert_operator interrupts_of_reading(path, text * 4, random), :>, 0
  ensure
    FileUtils.rm_f(path)
  end

  def interrupts_of_reading(path, text, random)
    made = +""
    total = 0
    Z::StreamReader.open(path) do |reader|
      until made.bytesize == text.bytesize
        results, interrupts = interrupted([nil], random, 0.01) { reader.read(2_000_000) }
        total += interrupts
        made << results.first
      end
      assert_predicate reader, :eof?
    end
    assert made == text.b
    total
  end

  def test_ctrl_c_and_timeouts
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Z.compress(self.class.text * 4, level: 22) } }
    output, = run_ruby(<<~RUBY)
      text = Random.new(1).bytes(500_000).unpack1("H*") * 400
      spawn("sleep 0.3; kill -INT \#{Process.pid}")
      begin
        loop { Offlock::Zstd.compress(text) }
      rescue Interrupt
        print "interrupted"
      end
    RUBY
    assert_equal "interrupted", output
  end
end
