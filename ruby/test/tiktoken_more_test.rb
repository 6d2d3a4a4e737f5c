# frozen_string_literal: true

require_relative "test_helper"

# Tests the additions of Offlock::Tiktoken to the original.
class TiktokenMoreTest < Minitest::Test
  include Texts

  WAYS = %i[auto always never].freeze
  MANY = Array.new(200) { |n| (Texts::SENTENCE * (n % 7)) + ("x" * n) }.freeze

  def test_releasing_the_lock_changes_nothing
    text = text_of(100_000)
    tokens = o200k.encode(text)
    WAYS.each do |release|
      assert_equal tokens, o200k.encode(text, release:)
      assert_equal tokens, o200k.encode_ordinary(text, release:)
      assert_equal tokens, o200k.encode_with_special_tokens(text, release:)
      assert_equal tokens.size, o200k.count(text, release:)
      assert_equal text, o200k.decode(tokens, release:)
      assert_equal text.b, o200k.decode_bytes(tokens, release:)
      assert_equal text[0, 1000], o200k.truncate(text, 1_000_000, release:)[0, 1000]
    end
  end

  def test_symbols_made_at_run_time
    program = <<~RUBY
      encoding = Offlock::Tiktoken.get_encoding("gpt2".dup.to_sym)
      %w[auto always never].each { |name| print encoding.count("x", release: name.dup.to_sym) }
      print encoding.count("<|endoftext|>", allowed_special: "all".dup.to_sym)
    RUBY
    # Evaluated, so that the symbols do not exist before.
    assert_equal "1111", run_ruby("eval(#{program.dump})").first
  end

  def test_an_unknown_release_is_named
    [:sometimes, "auto", nil, 1].each do |release|
      error = assert_raises(ArgumentError) { o200k.encode("x", release:) }
      assert_equal "release must be :auto, :always or :never, got #{release.inspect}", error.message
    end
  end

  def test_counts_what_encode_gives
    MANY.each { |text| assert_equal o200k.encode(text).size, o200k.count(text) }
    assert_equal 3, o200k.count("a<|endoftext|>b", allowed_special: :all)
  end

  def test_batches_equal_single_calls
    expected = MANY.map { |text| o200k.encode(text) }
    [nil, 1, 2, 16].product(WAYS) do |threads, release|
      assert_equal expected, o200k.encode_batch(MANY, threads:, release:)
      assert_equal expected.map(&:size), o200k.count_batch(MANY, threads:, release:)
    end
    assert_equal [], o200k.encode_batch([])
    assert_equal [], o200k.count_batch([])
  end

  def test_batches_with_special_tokens
    texts = ["a<|endoftext|>", "<|endofprompt|>"]
    assert_equal([[64, 199_999], [200_018]], o200k.encode_batch(texts, allowed_special: :all))
    assert_equal([2, 7], o200k.count_batch(texts, allowed_special: ["<|endoftext|>"]))
  end

  def test_batches_need_a_thread
    [0, -1].each do |threads|
      error = assert_raises(ArgumentError) { o200k.encode_batch(["x"], threads:) }
      assert_equal "threads must be at least 1, got #{threads}", error.message
    end
    assert_raises(TypeError) { o200k.count_batch(["x"], threads: "two") }
  end

  def test_a_batch_says_which_text_is_wrong
    error = assert_raises(TypeError) { o200k.encode_batch(["a", 5]) }
    assert_equal "text 1: no implicit conversion of Integer into String", error.message
    error = assert_raises(EncodingError) { o200k.count_batch(["a", "b", "c\xFF"]) }
    assert_equal "text 2: invalid byte sequence in UTF-8: 0xFF at byte 1", error.message
    error = assert_raises(EncodingError) { o200k.count_batch(["\xE9".b]) }
    assert_equal "text 0: expected utf-8, got ASCII-8BIT with 0xE9 at byte 0", error.message
    assert_raises(TypeError) { o200k.encode_batch("a") }
  end

  def test_a_batch_may_change_while_it_is_read
    texts = ["a"] * 3
    texts << Class.new { define_method(:to_str) { texts.clear && "b" } }.new << "c"
    assert_equal 4, o200k.encode_batch(texts).size
  end

  def test_packed_tokens
    tokens = o200k.encode(text_of(10_000))
    packed = o200k.encode(text_of(10_000), packed: true)
    assert_equal [Encoding::BINARY, tokens], [packed.encoding, packed.unpack("L*")]
    assert_equal o200k.decode(tokens), o200k.decode(packed)
    assert_equal o200k.decode_bytes(tokens), o200k.decode_bytes(packed)
    assert_equal MANY.map { |text| o200k.encode(text).pack("L*") }, o200k.encode_batch(MANY, packed: true)
    assert_equal "", o200k.encode("", packed: true)
  end

  def test_packed_tokens_are_whole
    error = assert_raises(ArgumentError) { o200k.decode("abcde") }
    assert_equal "packed tokens take 4 bytes each, got 5 bytes", error.message
  end

  def test_truncates_to_whole_tokens_and_characters
    text = "hello 🦄🦄 world"
    tokens = o200k.encode(text)
    (0..tokens.size + 1).each do |max|
      kept = o200k.truncate(text, max)
      assert text.start_with?(kept) && kept.valid_encoding?
      assert_operator o200k.count(kept), :<=, max
    end
    assert_equal text, o200k.truncate(text, tokens.size)
    assert_equal "a<|endoftext|>", o200k.truncate("a<|endoftext|>b", 2, allowed_special: :all)
  end

  def test_a_truncated_text_is_a_string_of_its_own
    text = "hello world"
    kept = o200k.truncate(text, 1)
    kept << "!"
    assert_equal ["hello!", "hello world", Encoding::UTF_8], [kept, text, kept.encoding]
  end

  def test_truncate_wants_a_number
    error = assert_raises(ArgumentError) { o200k.truncate("x", -1) }
    assert_equal "max_tokens must not be negative, got -1", error.message
    assert_raises(TypeError) { o200k.truncate("x", "1") }
    assert_raises(RangeError) { o200k.truncate("x", 2**70) }
  end

  def test_single_tokens
    assert_equal 24_912, o200k.encode_single_token("hello")
    assert_equal "hello".b, o200k.decode_single_token_bytes(24_912)
    assert_equal Encoding::BINARY, o200k.decode_single_token_bytes(24_912).encoding
    assert_equal 199_999, o200k.encode_single_token("<|endoftext|>")
    error = assert_raises(KeyError) { o200k.encode_single_token("no single token") }
    assert_match(/no single token/, error.message)
    error = assert_raises(KeyError) { o200k.decode_single_token_bytes(199_998) }
    assert_match(/199998/, error.message)
    assert_raises(RangeError) { o200k.decode_single_token_bytes(-1) }
  end

  def test_properties
    assert_equal [:o200k_base, 200_019, 200_018, 199_999],
                 [o200k.name, o200k.n_vocab, o200k.max_token_value, o200k.eot_token]
    assert_equal({ "<|endoftext|>" => 199_999, "<|endofprompt|>" => 200_018 }, o200k.special_tokens)
  end

  def test_a_megabyte_of_one_character
    ["a", " ", "\n", "🦄", "!", "é"].each do |run|
      text = run * (1_000_000 / run.bytesize)
      assert_equal text, o200k.decode(o200k.encode(text))
    end
  end

  def test_random_unicode_round_trips
    random = Random.new(42)
    100.times do
      text = Array.new(random.rand(200)) { random.rand(0x110000) }.grep_v(0xD800..0xDFFF).pack("U*")
      Offlock::Tiktoken::Encoding::ALL.each_value do |encoding|
        assert_equal text, encoding.decode(encoding.encode(text))
      end
    end
  end
end
