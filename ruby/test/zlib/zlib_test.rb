# frozen_string_literal: true

require "minitest/autorun"
require "stringio"
require "timeout"
require "zlib"
require "offlock/zlib"
require_relative "../support/ractor"

# Compares Offlock::Zlib with Ruby's own Zlib, and tests its additions.
class ZlibTest < Minitest::Test
  Ours = Offlock::Zlib
  Theirs = ::Zlib
  TEXT = File.binread(__FILE__)

  def samples(seed)
    random = Random.new(seed)
    words = TEXT.split
    text = Array.new(random.rand(1..20_000)) { words.sample(random: random) }.join(" ")
    ["", "x", "\0" * random.rand(100_000), random.bytes(random.rand(100_000)), text]
  end

  def test_each_reads_the_other
    [-1, 0, 1, 6, 9].each do |level|
      samples(level).each do |plain|
        assert_equal plain.b, Theirs.inflate(Ours.deflate(plain, level))
        assert_equal plain.b, Ours.inflate(Theirs.deflate(plain, level))
        assert_equal plain.b, Theirs.gunzip(Ours.gzip(plain, level: level))
        assert_equal plain.b, Ours.gunzip(Theirs.gzip(plain, level: level))
      end
    end
  end

  def test_streams_in_any_chunks
    random = Random.new(1)
    [15, -15, 31, 9].product([0, 1, 2, 3, 4]).each do |wbits, strategy|
      samples(wbits).each do |plain|
        [[Ours, Theirs], [Theirs, Ours]].each do |packer, unpacker|
          packed = pack(packer::Deflate.new(random.rand(1..9), wbits, 8, strategy), plain, random)
          assert_equal plain.b, unpack(unpacker::Inflate.new(wbits), packed, random)
        end
      end
    end
  end

  def pack(stream, plain, random)
    packed = +"".b
    until plain.empty?
      size = random.rand(1..40_000)
      packed << stream.deflate(plain.byteslice(0, size), [0, 2, 3].sample(random: random))
      plain = plain.byteslice(size..) || ""
    end
    packed << stream.finish
  ensure
    stream.close
  end

  def unpack(stream, packed, random)
    plain = +"".b
    until packed.empty?
      size = random.rand(1..5000)
      plain << stream.inflate(packed.byteslice(0, size))
      packed = packed.byteslice(size..) || ""
    end
    plain << stream.finish
  ensure
    stream.close
  end

  def outcome
    yield
  rescue Theirs::Error => e
    e.class
  end

  def test_damaged_data_is_the_same_class_of_error
    random = Random.new(2)
    packed = { inflate: Theirs.deflate(TEXT), gunzip: Theirs.gzip(TEXT) }
    400.times do
      packed.each do |name, bytes|
        damaged = bytes.dup
        at = name == :gunzip ? [0, 1, 2, *10..60].sample(random: random) : random.rand(60)
        damaged.setbyte(at, damaged.getbyte(at) ^ (1 << random.rand(8)))
        damaged = damaged.byteslice(0, random.rand(damaged.bytesize + 1))
        assert_equal outcome { Theirs.send(name, damaged) }, outcome { Ours.send(name, damaged) }, damaged.unpack1("H*")
      end
    end
  end

  def test_checksums
    samples(3).each do |plain|
      assert_equal Theirs.crc32(plain, -5), Ours.crc32(plain, -5)
      assert_equal Theirs.adler32(plain), Ours.adler32(plain)
      assert_equal Theirs.crc32_combine(1, 2, plain.bytesize), Ours.crc32_combine(1, 2, plain.bytesize)
    end
    assert_equal Theirs.crc_table, Ours.crc_table
  end

  def test_batches
    plain = samples(4) * 20
    packed = Ours.deflate_all(plain)
    assert_equal plain.map(&:b), packed.map { |each| Theirs.inflate(each) }
    [0, 1, 3].each { |threads| assert_equal plain.map(&:b), Ours.inflate_all(packed, threads: threads) }
    packed[7] = "bad"
    error = assert_raises(Ours::DataError) { Ours.inflate_all(packed) }
    assert_match(/input 7: incorrect header check/, error.message)
    assert_raises(TypeError) { Ours.inflate_all([1]) }
  end

  def test_output_is_limited
    bomb = Ours.deflate("\0" * 10_000_000)
    assert_equal 10_000_000, Ours.inflate(bomb, max_output: 10_000_000).bytesize
    assert_raises(Ours::OutputLimitError) { Ours.inflate(bomb, max_output: 9_999_999) }
    assert_raises(Ours::OutputLimitError) { Ours.inflate_all([bomb], max_output: 10) }
    assert_raises(Ours::OutputLimitError) { Ours::Inflate.new(max_output: 5000).inflate(bomb) }
    assert_raises(Ours::OutputLimitError) { Ours.gunzip(Ours.gzip("\0" * 100_000), max_output: 99_999) }
    reader = Ours::GzipReader.new(StringIO.new(Ours.gzip("\0" * 1_000_000)), max_output: 1000)
    assert_raises(Ours::OutputLimitError) { reader.read }
  end

  def test_progress_is_reported
    plain = Random.new(5).bytes(3_500_000)
    reported = []
    packed = Ours.deflate(plain, progress: ->(*step) { reported << step })
    assert_equal [1, 2, 3].map { |n| [n << 20, plain.bytesize] } + [[plain.bytesize] * 2], reported
    assert_equal plain, Ours.inflate(packed, progress: ->(done, _) { reported << done })
    assert_equal packed.bytesize, reported.last
  end

  def test_progress_of_a_batch_is_reported
    noise = Random.new(6)
    plain = Array.new(20) { noise.bytes(1_000_000) }
    reported = []
    packed = Ours.deflate_all(plain, progress: ->(*step) { reported << step })
    assert_equal [9_000_000, 18_000_000, 20_000_000].map { |done| [done, 20_000_000] }, reported
    assert_equal plain, Ours.inflate_all(packed, progress: ->(done, _) { reported << done })
    assert_equal packed.sum(&:bytesize), reported.last
    assert_raises(ZeroDivisionError) { Ours.deflate_all(plain, progress: ->(*) { 1 / 0 }) }
    packed[15] = "bad"
    error = assert_raises(Ours::DataError) { Ours.inflate_all(packed, progress: ->(*) {}) }
    assert_match(/input 15:/, error.message)
  end

  def test_timeout_ends_a_large_inflate_at_once
    bomb = Ours.deflate("\0" * (1 << 20) * 512, 1)
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { 100.times { Ours.inflate(bomb) } } }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, :<, 5
  end

  def test_an_interrupted_stream_goes_on
    plain = TEXT * 20_000
    packed = Ours.deflate(plain, 1)
    stream = Ours::Inflate.new
    made = +"".b
    begin
      Timeout.timeout(0.01) { made << stream.inflate(packed) }
    rescue Timeout::Error
      made << stream.inflate("")
    end
    assert_equal plain.b, made << stream.finish
  end

  def test_wakeup_does_no_harm
    plain = TEXT * 2000
    packed = Ours.deflate(plain)
    thread = Thread.new { Array.new(5) { Ours.inflate(packed) } }
    100.times { thread.alive? && thread.wakeup && sleep(0.0005) }
    assert_equal [plain.b] * 5, thread.value
  end

  def test_other_threads_run_meanwhile
    plain = Random.new(6).bytes(20_000_000)
    ran = 0
    counter = Thread.new { loop { ran += 1 } }
    before = ran
    Ours.deflate(plain)
    assert_operator ran - before, :>, 1000
  ensure
    counter.kill.join
  end

  def under_stress
    plain = ["short", TEXT.byteslice(0, 500), TEXT.byteslice(0, 1000) * 30]
    packed = Ours.deflate_all(plain, threads: 2, release: :always)
    stream = Ours::Deflate.new
    made = plain.map { |text| stream.deflate(text) } << stream.finish
    written = StringIO.new(+"".b)
    Ours::GzipWriter.wrap(written, threads: 2) { |gz| plain.each { |text| gz.write(text) } && gz.finish }
    [Ours.inflate_all(packed, release: :always), Theirs.inflate(made.join),
     plain.map { |text| Ours.inflate(Ours.deflate(text, release: :always), release: :always) },
     Ours::GzipReader.new(StringIO.new(written.string)).read, outcome { Ours.inflate("bad") }]
  end

  def test_the_garbage_collector_may_run_at_any_time
    expected = under_stress
    GC.stress = true
    outcomes = [under_stress, *Array.new(2) { Thread.new { Ours.inflate(Ours.deflate(TEXT * 9)) } }.map(&:value)]
    GC.stress = false
    GC.verify_compaction_references(expand_heap: true, toward: :empty) if GC.respond_to?(:verify_compaction_references)
    assert_equal [expected, (TEXT * 9).b, (TEXT * 9).b, expected], outcomes << under_stress
  ensure
    GC.stress = false
  end

  def test_ractors
    ractor = silently { Ractor.new { Offlock::Zlib.inflate(Offlock::Zlib.deflate("lock " * 10_000)).bytesize } }
    assert_equal 50_000, ractor.value
  end

  def silently
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end

  def test_the_surface_is_the_originals
    %i[Deflate Inflate GzipWriter GzipReader].each do |name|
      ours, theirs = Ours.const_get(name), Theirs.const_get(name)
      assert_empty theirs.public_instance_methods - Object.instance_methods - ours.public_instance_methods, name
      assert_empty theirs.singleton_methods(false) - ours.singleton_methods, name
    end
    assert_empty Theirs.constants - Ours.constants
    assert_empty Theirs.singleton_methods(false) - Ours.singleton_methods
  end
end
