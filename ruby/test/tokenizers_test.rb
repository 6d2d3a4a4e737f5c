# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "test_helper"

# The calls of the gem `tokenizers`, compared with what Hugging Face's own package says: see vectors/README.md.
class TokenizersTest < Minitest::Test
  VECTORS = JSON.parse(File.read(File.expand_path("../../vectors/tokenizers/encodings.json", __dir__)))
  Tokenizers = Offlock::Tokenizers

  def tokenizer(changes = {}) = Tokenizers::Tokenizer.from_str(JSON.generate(VECTORS["model"].merge(changes)))

  def described(encoding)
    lists = %w[ids tokens offsets type_ids special_tokens_mask attention_mask sequence_ids n_sequences length]
    tokens = (0...encoding.size)
    lists.to_h { |name| [name, encoding.public_send(name)] }.merge(
      "token_to_chars" => tokens.map { |token| encoding.token_to_chars(token) },
      "token_to_sequence" => tokens.map { |token| encoding.token_to_sequence(token) },
      "char_to_token" => Array.new(20) { |char| encoding.char_to_token(char) },
      "overflowing" => encoding.overflowing.map { |part| described(part) }
    )
  end

  def keywords(settings) = settings.transform_keys(&:to_sym)

  def set(tokenizer, truncation, padding)
    if truncation
      tokenizer.enable_truncation(truncation["max_length"], **keywords(truncation.except("max_length")))
    else
      tokenizer.no_truncation
    end
    padding ? tokenizer.enable_padding(**keywords(padding)) : tokenizer.no_padding
  end

  VECTORS["cases"].each_with_index do |wanted, number|
    define_method(:"test_case_#{number}") do
      tokenizer = tokenizer()
      set(tokenizer, wanted["truncation"], wanted["padding"])
      options = { add_special_tokens: wanted["add_special_tokens"] }
      made = tokenizer.encode_batch(VECTORS["texts"], **options)
      assert_equal wanted["encodings"], made.map { |encoding| described(encoding) }
      assert_equal wanted["settings"], [tokenizer.truncation, tokenizer.padding]
      fast = tokenizer.encode_batch_fast(VECTORS["texts"], **options)
      assert_equal made.map(&:ids), fast.map(&:ids)
      assert_equal [[0, 0]], fast.flat_map(&:offsets).uniq
    end

    define_method(:"test_a_file_with_the_settings_of_case_#{number}") do
      made = tokenizer(wanted["saved"])
      assert_equal wanted["settings"], [made.truncation, made.padding]
    end
  end

  def test_one_text_is_as_a_batch_of_one
    tokenizer = tokenizer()
    tokenizer.enable_padding(pad_to_multiple_of: 8)
    VECTORS["texts"].each do |text|
      assert_equal described(tokenizer.encode_batch([text]).first), described(tokenizer.encode(text))
    end
  end

  def test_text_that_is_changed_later
    text = +"ab c"
    encoding = tokenizer.encode(text)
    text.replace("é" * 9)
    assert_equal [[0, 0], [0, 2], [2, 4], [0, 0]], encoding.offsets
  end

  def test_decoding
    texts = VECTORS["texts"]
    ids = tokenizer.encode_batch(texts).map(&:ids)
    assert_equal(texts.map { |text| text.gsub("<s>", "") }, tokenizer.decode_batch(ids))
    assert_equal "<s>ab</s>", tokenizer.decode(tokenizer.encode("ab").ids, skip_special_tokens: false)
  end

  def test_the_vocabulary
    made = tokenizer
    assert_equal VECTORS["vocab"], made.vocab
    assert_equal [261, 258], [made.vocab_size, made.vocab_size(with_added_tokens: false)]
    assert_equal [258, nil], made.vocab(with_added_tokens: false).then { |vocab| [vocab.size, vocab["<s>"]] }
    assert_equal ["ab", 256, nil], [made.id_to_token(256), made.token_to_id("ab"), made.token_to_id("none")]
    assert_equal 2, made.num_special_tokens_to_add(false)
    token = made.added_tokens_decoder.fetch(258)
    assert_equal ["<s>", true, false, true, false, false],
                 [token.content, token.special, token.lstrip, token.rstrip, token.normalized, token.single_word]
    assert_equal [258, 259, 260], made.added_tokens_decoder.keys
  end

  def test_files_and_folders
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "tokenizer.json"), JSON.generate(VECTORS["model"]))
      made = [Tokenizers.from_file("#{folder}/tokenizer.json"), Tokenizers.from_pretrained(folder, revision: "main", auth_token: nil)]
      assert_equal [258, 256, 260], made.map { |one| one.encode("ab").ids }.uniq.first
    end
    assert_match(/nothing is downloaded/, assert_raises(Tokenizers::Error) { Tokenizers.from_pretrained("bert-base-cased") }.message)
    assert_match(/No such file/, assert_raises(Tokenizers::Error) { Tokenizers.from_file("/none") }.message)
    assert_raises(Tokenizers::Error) { Tokenizers::Tokenizer.from_str("{") }
    assert_raises(Tokenizers::Error) { tokenizer("model" => { "type" => "WordPiece" }) }
  end

  def test_what_is_not_here
    made = tokenizer
    assert_raises(ArgumentError) { made.encode("a", "b") }
    assert_raises(ArgumentError) { made.encode(%w[a b], is_pretokenized: true) }
    assert_raises(ArgumentError) { made.num_special_tokens_to_add(true) }
    made.enable_truncation(4, strategy: "only_second")
    assert_equal 3, made.encode("ab").size
    assert_raises(Tokenizers::Error) { made.encode("no room for this") }
  end

  def test_settings_that_are_not_valid
    made = tokenizer
    assert_raises(ArgumentError) { made.enable_truncation(-1) }
    assert_raises(ArgumentError) { made.enable_truncation(5, stride: 3) }
    assert_raises(ArgumentError) { made.enable_truncation(5, strategy: "shortest") }
    assert_raises(ArgumentError) { made.enable_truncation(5, side: "left") }
    assert_raises(ArgumentError) { made.enable_padding(direction: "up") }
    assert_raises(ArgumentError) { made.enable_padding(length: -1) }
    assert_raises(TypeError) { made.enable_truncation(nil) }
    assert_equal [nil, nil], [made.truncation, made.padding]
  end

  def test_a_ractor_may_use_it
    experimental, Warning[:experimental] = Warning[:experimental], false
    made = Ractor.make_shareable(tokenizer)
    ractor = Ractor.new(made) { |given| given.encode("ab c").ids }
    assert_equal [258, 256, 257, 260], ractor.value
    assert_raises(FrozenError) { made.enable_padding }
  ensure
    Warning[:experimental] = experimental
  end
end
