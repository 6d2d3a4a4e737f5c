# frozen_string_literal: true

require_relative "test_helper"

# Tests everything in Ractors, with shared encodings.
class RactorTest < Minitest::Test
  include Texts

  def setup
    @experimental = Warning[:experimental]
    Warning[:experimental] = false
  end

  def teardown
    Warning[:experimental] = @experimental
  end

  # Returns the values of the Ractors' blocks.
  def values(*ractors)
    ractors.map(&:value)
  end

  def test_encodings_are_shareable
    Offlock::Tiktoken::Encoding::ALL.each_value { |encoding| assert Ractor.shareable?(encoding) && encoding.frozen? }
  end

  def test_every_ractor_can_encode
    text = text_of(200_000)
    ractors = Array.new(4) do
      Ractor.new(text) { |given| Offlock::Tiktoken.get_encoding(:o200k_base).encode(given) }
    end
    assert_equal [o200k.encode(text)] * 4, values(*ractors)
  end

  def test_an_encoding_can_be_sent
    ractor = Ractor.new(o200k) { |encoding| [encoding, encoding.encode("hello")] }
    assert_equal [[o200k, [24_912]]], values(ractor)
  end

  def test_the_whole_interface_works_in_a_ractor
    ractor = Ractor.new(text_of(100_000)) do |text|
      encoding = Offlock::Tiktoken.encoding_for_model("gpt-4o-mini")
      tokens = encoding.encode(text, packed: true, release: :always)
      [encoding.decode(tokens) == text, encoding.count_batch([text, "x"], threads: 2).last,
       encoding.truncate("hello world", 1), Offlock::Tiktoken.list_model_names.size,
       encoding.special_tokens.keys.size, encoding.encode_batch(["a"] * 3).size]
    end
    assert_equal [[true, 1, "hello", Offlock::Tiktoken.list_model_names.size, 2, 3]], values(ractor)
  end

  def test_json_lines_in_ractors
    lines = Array.new(5_000) { |number| "{\"a\":\"a\\n#{number}\",\"n\":#{number}}\n" }.join
    ractors = Array.new(2) do
      Ractor.new(lines) do |data|
        Offlock::JSONL.extract("{", "a")
      rescue Offlock::JSONL::DecodeError
        Offlock::JSONL.extract(data, %w[a n])
      end
    end
    assert_equal [[Array.new(5_000) { |number| "a\n#{number}" }, [*0...5_000]]] * 2, values(*ractors)
  end

  def test_errors_in_a_ractor
    ractor = Ractor.new do
      encoding = Offlock::Tiktoken.get_encoding("o200k_base")
      [-> { encoding.encode("\xFF") }, -> { encoding.decode([1 << 30]) }, -> { encoding.encode("x", release: :no) },
       -> { encoding.encode("\x81\xAD".dup.force_encoding("Shift_JIS")) }].map do |call|
        call.call
      rescue StandardError => e
        e.class
      end
    end
    assert_equal [[EncodingError, Offlock::Tiktoken::UnicodeError, ArgumentError, EncodingError]], values(ractor)
  end

  def test_first_use_in_several_ractors_at_once
    output, status = run_ruby(<<~RUBY)
      Warning[:experimental] = false
      ractors = 4.times.map { Ractor.new { Offlock::Tiktoken.get_encoding(:cl100k_base).encode("hello world") } }
      p ractors.map(&:value).uniq
    RUBY
    assert_equal ["[[15339, 1917]]\n", true], [output, status.success?]
  end
end
