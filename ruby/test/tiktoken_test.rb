# frozen_string_literal: true

require_relative "test_helper"

# Tests the interface of tiktoken_ruby under its name.
class TiktokenTest < Minitest::Test
  Tiktoken = Offlock::Tiktoken

  def test_has_a_version
    refute_nil Tiktoken::VERSION
  end

  def test_a_copy_of_an_encoding_is_itself
    encoding = Offlock::Tiktoken.get_encoding(:r50k_base)
    assert_same encoding, encoding.dup
    assert_same encoding, encoding.clone(freeze: true)
  end

  def test_gets_encodings_by_symbol_and_string
    assert_instance_of Tiktoken::Encoding, Tiktoken.get_encoding("r50k_base")
    assert_same Tiktoken.get_encoding("r50k_base"), Tiktoken.get_encoding(:r50k_base)
  end

  def test_an_unknown_encoding_is_nil
    assert_nil Tiktoken.get_encoding("bad-encoding-name")
  end

  def test_lists_encodings
    expected = %i[r50k_base p50k_base p50k_edit cl100k_base o200k_base o200k_harmony]
    assert_empty expected - Tiktoken.list_encoding_names
  end

  def test_a_caller_may_change_the_lists
    Tiktoken.list_encoding_names.clear
    Tiktoken.list_model_names.clear
    refute_empty Tiktoken.list_encoding_names
    refute_empty Tiktoken.list_model_names
  end

  MODELS = {
    "gpt-3.5-turbo" => :cl100k_base, "ft:gpt-3.5-turbo:org:suffix:abc123" => :cl100k_base, "o3" => :o200k_base,
    "gpt-5" => :o200k_base, "gpt-5-mini" => :o200k_base, "gpt-5.4" => :o200k_base, "gpt-5.4-mini" => :o200k_base,
    "gpt-5.3-codex" => :o200k_base, "gpt-5.2-pro" => :o200k_base, "codex-mini" => :o200k_base,
    "codex-mini-latest" => :o200k_base, "chatgpt-4o" => :o200k_base, "chatgpt-4o-latest" => :o200k_base,
    "o4-preview" => :o200k_base, "gpt-oss-120b" => :o200k_harmony, "gpt-4-0314" => :cl100k_base,
    "text-davinci-003" => :p50k_base, "text-davinci-edit-001" => :p50k_edit, "davinci" => :r50k_base,
    "gpt2" => :gpt2
  }.freeze

  def test_knows_the_encodings_of_models
    MODELS.each do |model, encoding|
      assert_same Tiktoken.get_encoding(encoding), Tiktoken.encoding_for_model(model), model
      assert_same Tiktoken.get_encoding(encoding), Tiktoken.encoding_for_model(model.to_sym), model
    end
  end

  def test_every_listed_model_has_an_encoding
    Tiktoken.list_model_names.each { |model| refute_nil Tiktoken.encoding_for_model(model), model }
    assert_includes Tiktoken.list_model_names, :"gpt-4o"
  end

  def test_an_unknown_model_is_nil
    assert_nil Tiktoken.encoding_for_model("bad-model-name")
    assert_nil Tiktoken.encoding_for_model("")
  end

  def test_encodings_by_name
    assert_equal :cl100k_base, Tiktoken::Encoding.for_name(:cl100k_base).name
    assert_same Tiktoken::Encoding.for_name_cached("cl100k_base"), Tiktoken.get_encoding(:cl100k_base)
    error = assert_raises(NoMethodError) { Tiktoken::Encoding.for_name("nonesuch") }
    assert_match(/nonesuch/, error.message)
  end

  def test_encodings_cannot_be_made
    assert_raises(NoMethodError) { Tiktoken::Encoding.new }
    assert_raises(TypeError) { Tiktoken::Encoding.allocate }
  end

  Tiktoken.list_encoding_names.each do |name|
    define_method(:"test_#{name}_round_trips") do
      encoding = Tiktoken.get_encoding(name)
      %i[encode encode_ordinary encode_with_special_tokens].each do |encode|
        tokens = encoding.public_send(encode, "Hello world!")
        assert_equal 3, tokens.size
        assert_equal "Hello world!", encoding.decode(tokens)
      end
      assert_equal "#<Offlock::Tiktoken::Encoding #{name}>", encoding.inspect
    end
  end

  SPECIAL = "Hello<|endoftext|>World"

  def cl100k
    Tiktoken.get_encoding("cl100k_base")
  end

  def test_special_tokens_are_text_unless_allowed
    ordinary = cl100k.encode_ordinary(SPECIAL)
    assert_equal [9906, 27, 91, 8862, 728, 428, 91, 29, 10_343], ordinary
    assert_equal ordinary, cl100k.encode(SPECIAL)
    assert_equal ordinary, cl100k.encode(SPECIAL, allowed_special: [])
    assert_equal ordinary, cl100k.encode(SPECIAL, allowed_special: ["<|fim_prefix|>", "no special token"])
  end

  def test_allowed_special_tokens_are_tokens
    expected = [9906, 100_257, 10_343]
    assert_equal expected, cl100k.encode(SPECIAL, allowed_special: ["<|endoftext|>"])
    assert_equal expected, cl100k.encode(SPECIAL, allowed_special: :all)
    assert_equal expected, cl100k.encode_with_special_tokens(SPECIAL)
    assert_equal SPECIAL, cl100k.decode(expected)
  end

  def test_decoding_part_of_a_character
    gpt4o = Tiktoken.encoding_for_model("gpt-4o")
    tokens = gpt4o.encode("🦄")
    part = tokens[...-1]
    assert_raises(Tiktoken::UnicodeError) { gpt4o.decode(part) }
    assert_raises(Tiktoken::UnicodeError) { gpt4o.decode(part, errors: :strict) }
    replaced = gpt4o.decode(part, errors: :replace)
    assert_equal ["\u{FFFD}", Encoding::UTF_8], [replaced, replaced.encoding]
    bytes = gpt4o.decode_bytes(part)
    assert_equal ["🦄".b[...-1], Encoding::BINARY], [bytes, bytes.encoding]
    assert_equal "🦄", gpt4o.decode(tokens)
  end

  def test_decode_refuses_other_ways_to_treat_errors
    error = assert_raises(ArgumentError) { cl100k.decode([1], errors: :bogus) }
    assert_equal "errors must be :strict or :replace, got :bogus", error.message
  end

  def test_a_program_that_names_it_tiktoken_works
    output, status = run_program(<<~RUBY)
      Tiktoken = Offlock::Tiktoken
      encoding = Tiktoken.encoding_for_model("gpt-4")
      print encoding.decode(encoding.encode("hello world")), encoding.encode("hello world").length
    RUBY
    assert_equal ["hello world2", true], [output, status.success?]
  end

  include Texts
  alias run_program run_ruby
end
