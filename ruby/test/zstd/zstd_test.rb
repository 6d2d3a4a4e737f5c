# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/zstd_original"

# The functions, against the library itself.
class ZstdTest < Minitest::Test
  Z = Offlock::Zstd
  O = ZstdOriginal
  RANDOM = Random.new(1)
  WORDS = Array.new(900) { |number| "word#{number * 7919 % 1009} " }
  PLAIN = Array.new(60_000) { WORDS.sample(random: RANDOM) }.join.freeze
  SAMPLES = Array.new(2000) { |n| "{\"id\": #{n}, \"name\": \"name #{n * 7919 % 100}\", \"list\": [#{n % 7}, 2]}" }.freeze

  def need_original
    skip "needs libzstd.so.1" unless O.available?
  end

  def texts
    ["", "x", "off the lock " * 1000, PLAIN, Random.new(2).bytes(200_000), "\0" * 1_000_000, "é".encode("UTF-16LE") * 99]
  end

  def test_each_reads_what_the_other_writes
    need_original
    texts.product([-50, -1, 1, 3, 9, 13, 19, 22]) do |text, level|
      packed = Z.compress(text, level:)
      assert_equal text.b, O.decompress(packed)
      assert_equal text.b, Z.decompress(O.compress(text, level:))
      assert_equal [Encoding::BINARY, Encoding::BINARY], [packed.encoding, Z.decompress(packed).encoding]
    end
  end

  def test_random_data_and_sizes
    need_original
    random = Random.new(3)
    200.times do
      text = Array.new(random.rand(400)) { random.rand < 0.7 ? WORDS.sample(random:) : random.bytes(random.rand(30)) }.join
      level = random.rand(-5..12)
      release = %i[auto always never].sample(random:)
      assert_equal text.b, O.decompress(Z.compress(text, level:, release:))
      assert_equal text.b, Z.decompress(O.compress(text, level:), release:)
    end
  end

  def test_all_frames_are_decompressed
    frames = [Z.compress("one "), Z.write_skippable_frame(Z.compress("two "), "skipped"), Z.compress(""), Z.compress(PLAIN)]
    assert_equal "one two #{PLAIN}", Z.decompress(frames.join)
    assert_equal "skipped", Z.read_skippable_frame(frames[1])
    assert_nil Z.read_skippable_frame(frames[0])
  end

  def test_parameters
    need_original
    packed = Z.compress(PLAIN, level: 5, checksum_flag: true, window_log: 12, content_size_flag: false)
    assert_equal PLAIN.b, O.decompress(packed)
    assert_nil Z.frame_info(packed).decompressed_size
    assert_equal Z.compress(PLAIN, level: 5).bytesize + 4, Z.compress(PLAIN, level: 5, checksum_flag: true).bytesize
    assert_equal Z.compress(PLAIN), Z.compress(PLAIN, level: nil, checksum_flag: nil, window_log: 0)
    packed = Z.compress(PLAIN * 4, nb_workers: 2, enable_long_distance_matching: true)
    assert_equal PLAIN.b * 4, O.decompress(packed, most: 4 << 20)
  end

  def test_damage_is_found
    packed = Z.compress(PLAIN, checksum_flag: true)
    200.times do |n|
      damaged = packed.dup
      place = (n * 7919) % packed.bytesize
      damaged.setbyte(place, damaged.getbyte(place) ^ (1 << (n % 8)))
      made = Z.decompress(damaged)
      # The header has a bit without meaning, and the size of the window.
      assert_includes 4..5, place
      assert_equal PLAIN.b, made
    rescue Z::Error => e
      assert_match(/\(at byte \d+ of the input\)\z/, e.message)
    end
  end

  def test_truncation_is_found
    packed = Z.compress(PLAIN)
    [0, 1, 5, 20, packed.bytesize / 2, packed.bytesize - 1].each do |size|
      error = assert_raises(Z::Error) { Z.decompress(packed[0, size]) }
      assert_match(/ended before the end-of-stream marker/, error.message)
    end
  end

  def test_max_output
    packed = Z.compress("x" * 100_000)
    assert_equal 100_000, Z.decompress(packed, max_output: 100_000).bytesize
    error = assert_raises(Z::OutputLimitError) { Z.decompress(packed, max_output: 99_999) }
    assert_kind_of Z::Error, error
    assert_raises(Z::OutputLimitError) { Z.decompress(packed * 3, max_output: 299_999) }
    assert_raises(Z::OutputLimitError) { Z.decompress(Z.compress("x"), max_output: 0) }
    assert_equal "", Z.decompress(Z.compress(""), max_output: 0)
  end

  def test_the_window_can_be_limited
    packed = Z.compress(PLAIN * 4)
    assert_raises(Z::Error) { Z.decompress(packed, window_log_max: 12) }
    assert_equal PLAIN.b * 4, Z.decompress(packed, window_log_max: 25)
  end

  # What the caller does wrong, as the gem zstd-ruby raises it where that does.
  WRONG = {
    -> { Z.compress(1) } => TypeError,
    -> { Z.compress(nil) } => TypeError,
    -> { Z.compress("x", level: "3") } => TypeError,
    -> { Z.compress("x", level: 2**70) } => RangeError,
    -> { Z.compress("x", level: 23) } => ArgumentError,
    -> { Z.compress("x", speed: 1) } => ArgumentError,
    -> { Z.compress("x", compression_level: 1) } => ArgumentError,
    -> { Z.compress("x", window_log: 99) } => ArgumentError,
    -> { Z.compress("x", window_log: "9") } => TypeError,
    -> { Z.compress("x", dict: 5) } => ArgumentError,
    -> { Z.compress("x", release: :no) } => ArgumentError,
    -> { Z.decompress(1) } => TypeError,
    -> { Z.decompress("nonsense") } => RuntimeError,
    -> { Z.decompress("x", max_output: -1) } => RangeError,
    -> { Z.decompress("x", window_log_max: 99) } => ArgumentError,
    -> { Z.train_dict([], 100) } => ArgumentError,
    -> { Z.train_dict(["x"] * 20, 0) } => ArgumentError,
    -> { Z.train_dict([1], 100) } => TypeError,
    -> { Z.train_dict(%w[a b], 1000) } => Z::Error,
    -> { Z::Dictionary.new(1) } => TypeError,
    -> { Z::Dictionary.allocate.dict_id } => TypeError,
    -> { Z::Dictionary.new("x").send(:initialize, "y") } => TypeError,
    -> { Z::CDict.new("\x37\xa4\x30\xec".b + ("x" * 100)) } => Z::Error,
    -> { Z::CDict.new("content", 23) } => ArgumentError,
    -> { Z::CDict.new("content", "3") } => TypeError,
    -> { Z.frame_info("") } => Z::Error,
    -> { Z.frame_size("nonsense") } => Z::Error,
    -> { Z.frame_size(Z.compress(PLAIN)[0..-2]) } => Z::Error,
    -> { Z.write_skippable_frame("", "data", magic_variant: 16) } => Z::Error,
    -> { Z.read_skippable_frame(Z.write_skippable_frame("", "data")[0..-2]) } => Z::Error
  }.freeze

  def test_wrong_arguments
    WRONG.each do |call, error|
      assert_kind_of error, assert_raises(StandardError, &call), call.source_location.inspect
    end
  end

  def test_dictionaries_are_those_of_the_original
    need_original
    dict = Z.train_dict(SAMPLES, 4000)
    assert_equal O.train(SAMPLES, 4000), dict.dict_content
    assert_equal O.dict_id(dict.dict_content), dict.dict_id
    assert_equal [dict.dict_content.bytesize, true, true], [dict.bytesize, dict.frozen?, dict.dup.equal?(dict)]
  end

  def test_dictionaries_are_used
    need_original
    content = Z.train_dict(SAMPLES, 4000).dict_content
    [content, Z::Dictionary.new(content), Z::CDict.new(content, 19), Z::DDict.new(content)].each do |dict|
      packed = Z.compress(SAMPLES[3], dict:)
      assert_operator packed.bytesize, :<, Z.compress(SAMPLES[3]).bytesize
      assert_equal SAMPLES[3].b, O.decompress(packed, dict: content)
      assert_equal SAMPLES[3].b, Z.decompress(O.compress(SAMPLES[3], dict: content), dict:)
      assert_equal Z::FrameInfo.new(decompressed_size: SAMPLES[3].bytesize, dictionary_id: O.dict_id(content)), Z.frame_info(packed)
      assert_match(/Dictionary mismatch/, assert_raises(Z::Error) { Z.decompress(packed) }.message)
    end
    assert_equal Z.compress(SAMPLES[5], level: 19, dict: Z::Dictionary.new(content)),
                 Z.compress(SAMPLES[5], dict: Z::CDict.new(content, 19))
  end

  def test_raw_content_is_a_dictionary
    raw = SAMPLES.first(50).join
    packed = Z.compress(SAMPLES[3], dict: raw)
    assert_equal 0, Z::Dictionary.new(raw).dict_id
    assert_equal SAMPLES[3], Z.decompress(packed, dict: Z::Dictionary.new(raw))
    final = Z.finalize_dict(Z::Dictionary.new(raw), SAMPLES, 6000, level: 5)
    assert final.dict_content.end_with?(raw.byteslice(-100..))
    refute_equal 0, final.dict_id
    assert_equal SAMPLES[3], Z.decompress(Z.compress(SAMPLES[3], dict: final), dict: final)
  end

  def test_frames
    need_original
    frame = Z.compress(PLAIN)
    assert_equal O.frame_size("#{frame}rest".b), Z.frame_size("#{frame}rest".b)
    assert_equal [PLAIN.bytesize, 0], Z.frame_info(frame[0, 18]).then { [_1.decompressed_size, _1.dictionary_id] }
    assert_equal 12, Z.frame_size(Z.write_skippable_frame(frame, "data", magic_variant: 15))
  end

  def test_a_string_that_changes_meanwhile
    text = +PLAIN * 8
    expected = text.dup
    packed = Array.new(3) do
      thread = Thread.new { Z.compress(text, level: 9) }
      Thread.pass
      text.upcase!
      thread.value.tap { text.replace(expected) }
    end
    packed.each { |one| assert_includes [expected, expected.upcase], Z.decompress(one).force_encoding("UTF-8") }
  end
end
