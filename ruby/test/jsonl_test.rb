# frozen_string_literal: true

require "json"
require_relative "test_helper"

# Compares the extraction of fields from JSON lines with JSON.
class JSONLTest < Minitest::Test
  RELEASES = %i[always never].freeze
  RECORDS = [
    { "text" => "one", "id" => 1, "meta" => { "id" => "x", "ok" => true } },
    { "text" => "tab\t quote\" \\ / é 😀 \u2028 \0", "id" => -1, "meta" => nil },
    { "id" => (2**64) - 1, "meta" => { "id" => 0.1, "ok" => false } },
    nil,
    { "text" => nil, "id" => -(2**63), "other" => [{ "text" => 1 }], "meta" => {} }
  ].freeze

  def extract(...) = Offlock::JSONL.extract(...)

  def lines(records) = records.map { |record| JSON.generate(record) }.join("\n")

  # The value by way of the whole record.
  def slow(record, path) = path.reduce(record) { |found, key| found.nil? ? nil : found.fetch(key, nil) }

  def test_values_are_those_of_json
    RELEASES.each do |release|
      [%w[text], %w[id], %w[meta id], %w[meta ok], %w[none], %w[none none]].each do |path|
        expected = RECORDS.map { |record| slow(record, path) }
        assert_equal [expected], extract(lines(RECORDS), [path], release:)
      end
      expected = [RECORDS.map { |record| slow(record, %w[text]) }, ["x", nil, 0.1, nil, nil]]
      assert_equal expected, extract(lines(RECORDS), [:text, ["meta", :id]], release:)
    end
  end

  def test_strings_are_utf8_and_not_frozen
    data = lines([{ "a" => "é" }]).b
    text = extract(data, :a).first
    assert_equal ["é", Encoding::UTF_8, true, false], [text, text.encoding, text.valid_encoding?, text.frozen?]
  end

  def test_numbers_are_those_of_json
    %w[-0 -0.0 1E+2 0.1e-3 18446744073709551615].each do |number|
      found = extract("{\"a\":#{number}}", "a").first
      expected = JSON.parse(number)
      assert_equal [expected, expected.class], [found, found.class]
    end
    assert_equal [Float::INFINITY, -Float::INFINITY], extract("{\"a\":1e400}\n{\"a\":-1E400}", "a")
  end

  def test_blank_lines_line_ends_and_the_byte_order_mark
    assert_equal [1, 2], extract("\uFEFF{\"a\":1}\r\n\n \t\r\n{\"a\":2}", "a")
    assert_equal [[], [[], []], []], [extract("", "a"), extract("", %w[a b]), extract("{}", [])]
  end

  def test_of_equal_keys_the_last_one_counts
    assert_equal [[2], [nil]], extract('{"a":1,"a":2,"b":{"c":1},"b":{}}', ["a", %w[b c]])
  end

  def test_a_bad_line_is_named
    {
      '{"a":"x"} y' => "trailing characters: line 3 column 11 (byte 14)",
      '{"a":NaN}' => "expected value: line 3 column 6 (byte 9)",
      "{\"a\":\"\xFF\"}" => "the line is not valid UTF-8: line 3 column 7 (byte 10)",
      '{"a":"\ud800"}' => "a surrogate that is not one of a pair: line 3 column 6 (byte 9)",
      "{\"a\":\"#{"x" * 64}\"}" => "the line is longer than 64 bytes, the limit: line 3 column 1 (byte 4)"
    }.each do |line, message|
      RELEASES.each do |release|
        error = assert_raises(Offlock::JSONL::DecodeError) { extract("{}\n\n#{line}", "a", max_doc_bytes: 64, release:) }
        assert_equal [message, 3, message[/byte (\d+)/, 1].to_i], [error.message, error.line, error.offset]
      end
    end
  end

  def test_values_of_other_types
    error = assert_raises(TypeError) { extract('{"a":[1]}', "a") }
    assert_equal "expected a string, a number or a boolean, found an array: line 1 column 6 (byte 5)", error.message
    error = assert_raises(TypeError) { extract("[1]", "a") }
    assert_equal "expected an object, found an array: line 1 column 1 (byte 0)", error.message
    assert_raises(RangeError) { extract('{"a":18446744073709551616}', "a") }
  end

  def test_wrong_arguments
    assert_raises(TypeError) { extract("{}", 7) }
    assert_raises(TypeError) { extract("{}", ["a", [7]]) }
    assert_raises(TypeError) { extract(7, "a") }
    assert_raises(ArgumentError) { extract("{}", [[]]) }
    assert_raises(ArgumentError) { extract("{}", [["a"] * 65]) }
    assert_raises(ArgumentError) { extract("{}", "a", max_doc_bytes: 0) }
  end

  def test_threads
    data = lines(Array.new(5_000) { |number| { "a" => "a\n#{number}", "n" => number } })
    expected = [Array.new(5_000) { |number| "a\n#{number}" }, [*0...5_000]]
    threads = Array.new(4) { Thread.new { Array.new(3) { extract(data, %w[a n]) }.uniq } }
    assert_equal [[expected]], threads.map(&:value).uniq
  end
end
