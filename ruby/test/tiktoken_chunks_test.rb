# frozen_string_literal: true

require "test_helper"

# Encoding#chunks: the parts of a text, and what they say about themselves.
class TiktokenChunksTest < Minitest::Test
  BOUNDARIES = %i[token word sentence line paragraph].freeze
  PROSE = "One two. Three four!\n\nFünf, sechs 🙂 «sieben». 八九。十\n" * 30

  def test_chunks_joined_are_the_text
    ["", "a", PROSE, PROSE.tr("\n", " "), "x" * 5_000, "日本語" * 500].product(BOUNDARIES, %i[always never]) do |text, boundary, release|
      chunks = cl100k.chunks(text, 12, boundary:, release:)
      assert_equal text, chunks.map(&:text).join
      chunks.each do |chunk|
        assert_equal chunk.text, text[chunk.range]
        assert_equal cl100k.encode_ordinary(chunk.text).size, chunk.tokens
        assert_operator chunk.tokens, :<=, 12
      end
    end
  end

  def test_chunks_overlap_by_whole_sentences
    chunks = cl100k.chunks("One two. Three four. Five six.", 7, overlap: 3, boundary: :sentence)
    expected = [Offlock::Tiktoken::Chunk.new("One two. Three four.", 0...20, 6),
                Offlock::Tiktoken::Chunk.new(" Three four. Five six.", 8...30, 6)]
    assert_equal expected, chunks
  end

  def test_other_encodings_are_transcoded
    text = "Fünf Sätze. Oder zwei."
    expected = cl100k.chunks(text, 5)
    assert_equal expected, cl100k.chunks(text.encode("ISO-8859-1"), 5)
    assert_equal expected, cl100k.chunks(text.encode("UTF-16LE"), 5)
    assert_equal Encoding::UTF_8, expected.first.text.encoding
  end

  def test_what_makes_no_sense_is_refused
    { [0] => /at least 1, got 0/, [-1] => /at least 1/, [5, { overlap: 5 }] => /overlap .* got 5/, [5, { overlap: -1 }] => /overlap/,
      [5, { boundary: :page }] => /boundary must be .*, got :page/ }.each do |(max, options), message|
      error = assert_raises(ArgumentError) { cl100k.chunks("text", max, **options) }
      assert_match message, error.message
    end
    assert_raises(TypeError) { cl100k.chunks(nil, 5) }
    assert_raises(TypeError) { cl100k.chunks("text", "5") }
    assert_raises(EncodingError) { cl100k.chunks("\xff", 5) }
  end

  def test_a_character_with_too_many_tokens_is_named
    error = assert_raises(ArgumentError) { cl100k.chunks("ab🫠", 2) }
    assert_equal "a chunk needs at least 3 tokens for one character (at byte 2)", error.message
  end

  def test_in_a_ractor
    before, Warning[:experimental] = Warning[:experimental], false
    chunks = Ractor.new(PROSE.dup.freeze) do |text|
      Offlock::Tiktoken.get_encoding(:cl100k_base).chunks(text, 12, boundary: :word)
    end.value
    assert_equal cl100k.chunks(PROSE, 12, boundary: :word), chunks
  ensure
    Warning[:experimental] = before
  end

  private

  def cl100k = Offlock::Tiktoken.get_encoding(:cl100k_base)
end
