# frozen_string_literal: true

require_relative "test_helper"

# Which Strings are accepted as texts, and the exceptions for the others.
class TextTest < Minitest::Test
  include Texts

  def assert_refused(message, text, by: EncodingError)
    %i[auto always never].each do |release|
      error = assert_raises(by) { o200k.encode(text, release:) }
      assert_equal message, error.message
    end
  end

  def test_what_is_no_string
    assert_refused "no implicit conversion of Integer into String", 5, by: TypeError
    assert_refused "no implicit conversion of nil into String", nil, by: TypeError
    assert_refused "no implicit conversion of Symbol into String", :sym, by: TypeError
  end

  def test_what_is_as_good_as_a_string
    assert_equal o200k.encode("hello"), o200k.encode(Struct.new(:to_str).new("hello"))
    assert_equal o200k.encode("hello"), o200k.encode(Class.new(String).new("hello"))
  end

  def test_invalid_utf8
    assert_refused "invalid byte sequence in UTF-8: 0xFF at byte 2", "ab\xFF"
    assert_refused "invalid byte sequence in UTF-8: 0xE2 at byte 3", "é \xE2\x82"
    assert_refused "invalid byte sequence in UTF-8: 0xED at byte 0", "\xED\xA0\x80"
    assert_refused "invalid byte sequence in UTF-8: 0xC0 at byte 0", "\xC0\x80"
  end

  def test_invalid_utf8_far_into_the_text
    [100_000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1_000_000].each do |offset|
      assert_refused "invalid byte sequence in UTF-8: 0xF0 at byte #{offset}", "#{"a" * offset}\xF0\x9F\xA6 "
    end
    assert_refused "invalid byte sequence in UTF-8: 0xE2 at byte 1000000", "#{"a" * 1_000_000}\xE2"
  end

  def test_characters_across_any_boundary
    4.times do |shift|
      text = ("a" * shift) + ("🦄" * 100_000)
      refute text.dup.force_encoding("UTF-8").equal?(text)
      assert_equal text, o200k.decode(o200k.encode(text.b.force_encoding("UTF-8")))
    end
  end

  def test_invalid_ascii
    assert_equal o200k.encode("plain"), o200k.encode("plain".encode("US-ASCII"))
    assert_refused "invalid byte sequence in UTF-8: 0xC3 at byte 1", "hé".dup.force_encoding("US-ASCII")
  end

  def test_binary_has_to_be_ascii
    assert_equal o200k.encode("plain"), o200k.encode("plain".b)
    assert_refused "expected utf-8, got ASCII-8BIT with 0xC3 at byte 1", "hé".b
  end

  def test_other_encodings_are_transcoded
    { "ISO-8859-1" => "héé", "Windows-1252" => "h“é”", "Shift_JIS" => "日本", "EUC-JP" => "日本", "GB18030" => "日本🦄",
      "UTF-16LE" => "é🦄", "UTF-16BE" => "é🦄", "UTF-32LE" => "é🦄", "UTF-16" => "é", "ISO-2022-JP" => "日本" }
      .each do |encoding, text|
      assert_equal o200k.encode(text), o200k.encode(text.encode(encoding)), encoding
      assert_equal [o200k.count(text)], o200k.count_batch([text.encode(encoding)]), encoding
      assert_equal text, o200k.truncate(text.encode(encoding), 100), encoding
    end
  end

  def test_what_cannot_be_transcoded
    assert_refused "expected utf-8, got UTF-16LE with 0x00 0xD8 at byte 2",
                   "a\x00\x00\xD8b\x00".dup.force_encoding("UTF-16LE")
    assert_refused "expected utf-8, got Shift_JIS with 0x81 0xAD at byte 2",
                   "ab\x81\xAD".dup.force_encoding("Shift_JIS")
    assert_refused "expected utf-8, got Windows-1252 with 0x81 at byte 1", "a\x81".dup.force_encoding("Windows-1252")
    assert_refused "expected utf-8, got UTF-7", "a\xFF".dup.force_encoding("UTF-7")
  end

  def test_the_text_stays_as_it_is
    text = "hé\xFF".dup.force_encoding("ISO-8859-1")
    before = [text.b, text.encoding, text.frozen?]
    o200k.encode(text)
    assert_equal before, [text.b, text.encoding, text.frozen?]
    text << "more"
  end

  def test_allowed_special_is_a_list_of_strings
    assert_raises(TypeError) { o200k.encode("x", allowed_special: 5) }
    assert_raises(TypeError) { o200k.encode("x", allowed_special: "<|endoftext|>") }
    assert_raises(TypeError) { o200k.encode("x", allowed_special: [5]) }
    assert_raises(TypeError) { o200k.encode("x", allowed_special: :some) }
  end

  NO_TOKENS = {
    [1, 999_999_999] => [Offlock::Tiktoken::UnicodeError, "invalid token for decoding: 999999999 (at index 1)"],
    [1, nil] => [TypeError, "not a token: nil (at index 1)"],
    ["x"] => [TypeError, 'not a token: "x" (at index 0)'],
    [1, 2, -1] => [RangeError, "not a token: -1 (at index 2)"],
    [2**40] => [RangeError, "not a token: 1099511627776 (at index 0)"],
    [2**80] => [RangeError, "not a token: 1208925819614629174706176 (at index 0)"]
  }.freeze

  def test_what_is_no_token
    NO_TOKENS.each do |tokens, (error, message)|
      assert_equal message, assert_raises(error) { o200k.decode(tokens) }.message
      assert_equal message, assert_raises(error) { o200k.decode_bytes(tokens) }.message
      assert_equal message, assert_raises(error) { o200k.decode(tokens, errors: :replace) }.message
    end
  end

  def test_what_is_no_list_of_tokens
    assert_raises(TypeError) { o200k.decode(nil) }
    assert_raises(TypeError) { o200k.decode(5) }
  end

  def test_what_can_be_made_a_token
    assert_equal o200k.decode([1]), o200k.decode([1.5])
    assert_equal o200k.decode([7]), o200k.decode([Struct.new(:to_int).new(7)])
  end

  def test_tokens_may_change_while_they_are_read
    tokens = [1, 2]
    tokens << Class.new { define_method(:to_int) { tokens.clear && 3 } }.new << 4
    assert_equal o200k.decode([1, 2, 3]), o200k.decode(tokens)
  end

  def test_tokens_that_are_no_utf8
    error = assert_raises(Offlock::Tiktoken::UnicodeError) { o200k.decode(o200k.encode("ab🦄")[..-2]) }
    assert_equal "the tokens are no valid UTF-8: 0xF0 at byte 2", error.message
  end
end
