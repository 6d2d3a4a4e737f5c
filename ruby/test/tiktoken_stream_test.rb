# frozen_string_literal: true

require "timeout"
require_relative "support/scenarios"
require_relative "test_helper"

# Encoding#stream and Tokenizer#stream: the tokens are those of the whole text, for any cut of it.
class TiktokenStreamTest < Minitest::Test
  include Texts

  PROSE = "Off the lock, don't wait: 12345 times.\n\nFünf 日本語 🙂<|endoftext|> and more.  "
  ENCODINGS = %i[gpt2 p50k_base cl100k_base o200k_base o200k_harmony].map { Offlock::Tiktoken.get_encoding(_1) }.freeze

  # Pieces of these numbers of bytes, over and over.
  def cut(text, lengths)
    at = 0
    lengths.cycle.lazy.take_while { at < text.bytesize }.map { |length| text.byteslice(at, length).tap { at += length } }.to_a
  end

  def cl100k = Offlock::Tiktoken.get_encoding(:cl100k_base)

  def joined(stream, pieces) = pieces.flat_map { |piece| stream.feed(piece) } + stream.finish

  def test_any_cut_gives_the_tokens_of_the_whole
    random = Random.new(1)
    parts = [" ", "\n", "a", "word", "'ll", "日", "\u0301", "1", "!", "<|", "<|endoftext|>", "<|endof", "🙂"]
    200.times do
      text = Array.new(random.rand(20)) { parts.sample(random: random) }.join
      lengths = Array.new(3) { random.rand(1..7) }
      ENCODINGS.each do |encoding|
        assert_equal encoding.encode(text, allowed_special: :all), joined(encoding.stream(allowed_special: :all), cut(text, lengths))
        assert_equal encoding.encode(text), joined(encoding.stream, text.chars)
      end
    end
  end

  def test_a_model_is_streamed_as_it_encodes
    model = Offlock::Tokenizer.from_bytes(Scenarios::MODEL)
    text = "words and e\u0301 <s> more<s>" * 20
    [true, false].product([true, false], [[1], [2, 5], [100]]) do |add, split, lengths|
      stream = model.stream(add_special_tokens: add, split_special_tokens: split)
      assert_equal model.encode(text, add_special_tokens: add, split_special_tokens: split), joined(stream, cut(text, lengths))
    end
  end

  def test_counts_while_the_text_grows
    stream, counted, tokens, text = cl100k.stream, cl100k.stream, [], +""
    PROSE.each_char do |character|
      text << character
      new = stream.feed(character)
      assert_equal new.size, counted.count(character)
      tokens.concat(new)
      assert_equal [tokens.size, cl100k.count(text)], [stream.final_count, stream.total]
      assert_operator stream.pending, :<, 40
    end
    assert_equal cl100k.encode(PROSE), tokens + stream.finish
    assert_equal cl100k.count(PROSE), stream.total
  end

  def test_encodings_of_pieces
    stream = cl100k.stream
    pieces = ["\xE6\x97", "\xA5 a".b, " b".encode("US-ASCII"), " é".encode("ISO-8859-1"), " c".encode("UTF-16LE")]
    tokens = pieces.flat_map { |piece| stream.feed(piece) }
    assert_equal cl100k.encode("日 a b é c"), tokens + stream.finish
    assert_raises(Encoding::UndefinedConversionError) { cl100k.stream.feed("\x81".dup.force_encoding("Windows-1252")) }
    packed = cl100k.stream.then { |other| other.feed("ab cd", packed: true) + other.finish(packed: true) }
    assert_equal "ab cd", cl100k.decode(packed)
  end

  def test_what_raises_leaves_the_stream_as_it_was
    stream = cl100k.stream(limit: 20)
    tokens = stream.feed("one \xE6\x97")
    state = [stream.pending, stream.final_count, stream.total]
    [["a", EncodingError, /not valid UTF-8 \(at byte 4\)/], ["\xA5#{"x" * 21}", RuntimeError, /more than 20 bytes/],
     [5, TypeError, /String/]].each do |piece, error, message|
      assert_match message, assert_raises(error) { stream.feed(piece) }.message
      assert_equal state, [stream.pending, stream.final_count, stream.total]
    end
    assert_raises(EncodingError) { stream.finish }
    assert_equal cl100k.encode("one 日!"), tokens + stream.feed("\xA5!") + stream.finish
    [-> { stream.feed("a") }, -> { stream << "" }, -> { stream.finish }].each do |call|
      assert_match(/ended/, assert_raises(RuntimeError, &call).message)
    end
  end

  def test_arguments
    assert_match(/limit must be at least 1, got 0/, assert_raises(ArgumentError) { cl100k.stream(limit: 0) }.message)
    assert_raises(TypeError) { cl100k.stream(allowed_special: 5) }
    assert_raises(TypeError) { Offlock::Tiktoken::Stream.new }
    assert_raises(ArgumentError) { cl100k.stream.feed("a", release: :often) }
    own = Offlock::Tokenizer.from_bytes(Scenarios::RANKS, pattern: '\p{L}+|\P{L}+')
    assert_match(/cannot be encoded as it arrives: its pattern/, assert_raises(ArgumentError) { own.stream }.message)
  end

  def test_an_interrupted_call_can_be_repeated
    text = text_of(6_000_000)
    %i[always never].product([0.001, 0.01, 0.05]) do |release, after|
      stream = cl100k.stream
      tokens = stream.feed("first ")
      state = [stream.pending, stream.final_count]
      begin
        Timeout.timeout(after) { stream.feed(text, release:) }
        flunk "not interrupted"
      rescue Timeout::Error
        assert_equal state, [stream.pending, stream.final_count]
      end
      assert_equal cl100k.encode("first  more"), tokens + stream.feed(" more") + stream.finish
    end
  end

  def test_one_thread_at_a_time
    stream, text = cl100k.stream, text_of(20_000_000)
    other = Thread.new { stream.count(text, release: :always) }
    errors = []
    until other.join(0.001)
      begin
        stream.total
      rescue ThreadError => e
        errors << e.message
      end
    end
    assert_equal ["another thread uses the stream"], errors.uniq
    assert_equal cl100k.count(text), stream.total
  end

  def test_streams_in_ractors
    counts = Array.new(2) do
      ractor = Ractor.new(PROSE) do |text|
        stream = Offlock::Tiktoken.get_encoding(:cl100k_base).stream
        text.each_char { |character| stream << character }
        stream.total
      end
      RUBY_VERSION < "4" ? ractor.take : ractor.value
    end
    assert_equal [cl100k.count(PROSE)] * 2, counts
  end

  def test_a_long_piece_in_small_parts
    stream = cl100k.stream
    20_000.times { stream << "abcde" }
    assert_equal [100_000, 0], [stream.pending, stream.final_count]
    assert_equal cl100k.encode("abcde" * 20_000), stream.finish
  end
end
