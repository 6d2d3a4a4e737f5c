# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "test_helper"
require_relative "support/ractor"

# The tokenizer of a model, on a small file that is made here. The core's tests have more, and Python's compare real models
# with their originals.
class TokenizerTest < Minitest::Test
  include Texts

  PRINTABLE = [*0x21..0x7e, *0xa1..0xac, *0xae..0xff].freeze
  OTHERS = ([*0..255] - PRINTABLE).freeze
  LETTERS = (0..255).map { |byte| [PRINTABLE.include?(byte) ? byte : 0x100 + OTHERS.index(byte)].pack("U") }.freeze

  def self.added(text, id, special)
    { id:, content: text, special:, single_word: false, lstrip: false, rstrip: false, normalized: false }
  end

  FILE = {
    version: "1.0",
    added_tokens: [added("<s>", 258, true), added("<tool>", 259, false)],
    normalizer: { type: "NFC" },
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [], special_tokens: { "<s>": { id: "<s>", ids: [258], tokens: ["<s>"] } }
    },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE", vocab: LETTERS.each_with_index.to_h.merge("ab" => 256, "Ġc" => 257), merges: [%w[a b], %w[Ġ c]]
    }
  }.freeze
  TOKENIZER = Offlock::Tokenizer.from_bytes(JSON.generate(FILE))
  TEXT = "ab c<s>é<tool>"
  IDS = [258, 256, 257, 258, 0xc3, 0xa9, 259].freeze

  def refused(change)
    assert_raises(ArgumentError) { Offlock::Tokenizer.from_bytes(JSON.generate(FILE.merge(change))) }.message
  end

  def test_a_text_and_back
    %i[auto always never].each do |release|
      assert_equal IDS, TOKENIZER.encode(TEXT, release:)
      assert_equal IDS, TOKENIZER.encode(TEXT.sub("é", "e\u0301"), packed: true, release:).unpack("L*")
      assert_equal IDS.drop(1), TOKENIZER.encode(TEXT, add_special_tokens: false, release:)
      assert_equal [258, *"<s>".bytes, 259], TOKENIZER.encode("<s><tool>", split_special_tokens: true, release:)
      assert_equal IDS.size, TOKENIZER.count(TEXT, release:)
      assert_equal "ab cé<tool>", TOKENIZER.decode(IDS, release:)
      assert_equal "<s>#{TEXT}", TOKENIZER.decode(IDS.pack("L*"), skip_special_tokens: false, release:)
      assert_equal "ab", TOKENIZER.truncate("ab cd", 2, release:)
    end
  end

  def test_chunks
    text = "ab cd 🙂<tool> ab. " * 50
    %i[token word sentence line paragraph].product([0, 3], %i[always never]).each do |boundary, overlap, release|
      chunks = TOKENIZER.chunks(text.encode("UTF-16LE"), 9, boundary:, overlap:, release:)
      chunks.each do |chunk|
        assert_equal chunk.text, text[chunk.range]
        assert_equal chunk.tokens, TOKENIZER.count(chunk.text, add_special_tokens: false)
      end
      assert_operator chunks.map(&:tokens).max, :<=, 9
      assert_equal text, chunks.map(&:text).join if overlap.zero?
    end
    assert_equal ["ab<tool>", " c"], TOKENIZER.chunks("ab<tool> c", 2).map(&:text)
    assert_raises(ArgumentError) { TOKENIZER.chunks("🙂", 3) }
    assert_raises(ArgumentError) { TOKENIZER.chunks("a", 3, boundary: :page) }
  end

  def test_bytes_that_are_no_text
    assert_equal "\u{FFFD}a", TOKENIZER.decode([0xc3, 97, 9999])
    assert_equal "\xC3".b, TOKENIZER.decode_bytes([0xc3, 258])
    assert_raises(Offlock::Tiktoken::UnicodeError) { TOKENIZER.decode([0xc3], errors: :strict) }
    assert_raises(ArgumentError) { TOKENIZER.decode([1], errors: :ignore) }
    assert_raises(EncodingError) { TOKENIZER.encode("\xFF") }
  end

  def test_places
    ids, places = TOKENIZER.encode_with_offsets("é<s>ab")
    assert_equal [[258, 0xc3, 0xa9, 258, 256], [[0, 0], [0, 1], [0, 1], [1, 4], [4, 6]]], [ids, places]
    assert_equal [[0, 2], [0, 2], [2, 3]], TOKENIZER.encode_with_offsets("éa", unit: :bytes, add_special_tokens: false).last
    assert_raises(ArgumentError) { TOKENIZER.encode_with_offsets("a", unit: :words) }
  end

  def test_many_texts
    texts = [TEXT, "", "ab"] * 50
    assert_equal [IDS, [258], [258, 256]] * 50, TOKENIZER.encode_batch(texts)
    assert_equal [6, 0, 1] * 50, TOKENIZER.count_batch(texts, add_special_tokens: false, threads: 2)
    assert_raises(ArgumentError) { TOKENIZER.encode_batch(texts, threads: 0) }
    assert_raises(ArgumentError) { TOKENIZER.truncate("a", -1) }
  end

  def test_names_of_tokens
    assert_equal [257, 258, nil], ["Ġc", "<s>", "nothing"].map { |token| TOKENIZER.token_to_id(token) }
    assert_equal ["Ġc", "<tool>", nil], [257, 259, 260].map { |id| TOKENIZER.id_to_token(id) }
    assert_equal [260, { "<s>" => 258, "<tool>" => 259 }], [TOKENIZER.vocab_size, TOKENIZER.added_tokens]
    assert_equal "#<Offlock::Tokenizer with 260 tokens>", TOKENIZER.inspect
    assert_same TOKENIZER, TOKENIZER.dup
  end

  def test_files_and_folders
    Dir.mktmpdir do |folder|
      assert_raises(Errno::ENOENT) { Offlock::Tokenizer.new(folder) }
      File.write("#{folder}/tokenizer.json", JSON.generate(FILE))
      assert_equal IDS, Offlock::Tokenizer.new(folder).encode(TEXT)
      assert_equal IDS, Offlock::Tokenizer.new("#{folder}/tokenizer.json").encode(TEXT)
      ranks = (0..255).map { |byte| "#{[[byte].pack("C")].pack("m0")} #{byte}\n" }.join
      File.write("#{folder}/small.tiktoken", "#{ranks}YWI= 256")
      tokenizer = Offlock::Tokenizer.new(folder, pattern: '\p{L}+|\P{L}+', special_tokens: { "<end>" => 257 })
      assert_equal [256, 257], tokenizer.encode("ab<end>")
    end
  end

  def test_what_is_not_here_is_named
    assert_includes refused(model: { type: "Unigram", vocab: [["a", 0.5]] }), "not the model Unigram"
    assert_includes refused(normalizer: { type: "Lowercase" }), "the normalizer Lowercase"
    assert_raises(ArgumentError) { Offlock::Tokenizer.from_bytes("{}", special_tokens: { "<s>" => 1 }) }
    assert_raises(ArgumentError) { Offlock::Tokenizer.from_bytes("YQ== 0", pattern: "(") }
    assert_raises(TypeError, NoMethodError) { Offlock::Tokenizer.allocate }
  end

  def test_threads_and_ractors_share_a_tokenizer
    text = TEXT * 1000
    counts = Array.new(4) { Thread.new { Array.new(5) { TOKENIZER.count(text, release: :always) } } }.map(&:value)
    assert_equal [[6001] * 5] * 4, counts
    assert Ractor.shareable?(TOKENIZER)
    was, Warning[:experimental] = Warning[:experimental], false
    assert_equal IDS, Ractor.new(TOKENIZER, TEXT) { |tokenizer, given| tokenizer.encode(given) }.value
  ensure
    Warning[:experimental] = was
  end

  # With the signatures in sig, every call checked.
  def test_the_interface_is_as_signed
    require "rbs"
    program = <<~RUBY
      tokenizer = Offlock::Tokenizer.from_bytes(#{JSON.generate(FILE).dump})
      tokens = tokenizer.encode("a", add_special_tokens: false, split_special_tokens: true, release: :always)
      packed = tokenizer.encode("a", packed: true)
      tokenizer.encode_with_offsets("a", unit: :bytes)
      tokenizer.encode_batch(["a"], threads: nil)
      tokenizer.encode_batch(["a"], packed: true, threads: 2)
      tokenizer.count("a")
      tokenizer.count_batch(["a"], add_special_tokens: false)
      tokenizer.truncate("a b", 1)
      tokenizer.chunks("a b", 1).map { |chunk| [chunk.text, chunk.range, chunk.tokens] }
      tokenizer.chunks("a b", 2, overlap: 1, boundary: :word, release: :never)
      stream = tokenizer.stream(add_special_tokens: true, split_special_tokens: false, limit: nil)
      [stream.feed("a"), stream.finish]
      tokenizer.decode(tokens, errors: :strict)
      tokenizer.decode_bytes(packed, skip_special_tokens: false)
      tokenizer.token_to_id("a")
      tokenizer.id_to_token(1)
      [tokenizer.vocab_size, tokenizer.added_tokens, tokenizer.inspect, tokenizer.dup]
      print "done"
    RUBY
    checked = { "RBS_TEST_TARGET" => "Offlock::*", "RBS_TEST_OPT" => "-I #{File.expand_path("../sig", __dir__)}",
                "RBS_TEST_RAISE" => "true", "RBS_TEST_LOGLEVEL" => "error" }
    before = ENV.to_h
    ENV.update(checked)
    output, status = run_ruby(program, libraries: ["rbs/test/setup", "offlock"])
    assert_equal ["done", true], [output, status.success?]
  rescue LoadError
    skip "needs the gem rbs"
  ensure
    ENV.replace(before) if before
  end
end
