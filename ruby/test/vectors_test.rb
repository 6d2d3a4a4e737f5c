# frozen_string_literal: true

require "json"
require "zlib"
require_relative "test_helper"

# Runs the vectors that the core and the Python package also read; vectors/README.md describes them.
class VectorsTest < Minitest::Test
  FOLDER = File.expand_path("../../vectors/tokens", __dir__)

  def cases(name)
    lines = File.readlines(File.join(FOLDER, "#{name}.jsonl"), encoding: "UTF-8")
    refute_empty lines
    lines.each { |line| yield JSON.parse(line, symbolize_names: true) }
  end

  def encoding(given)
    Offlock::Tiktoken.get_encoding(given.fetch(:encoding))
  end

  def bytes(hexadecimal)
    [hexadecimal].pack("H*")
  end

  def crc(tokens)
    Zlib.crc32(tokens.pack("V*"))
  end

  def test_encode
    cases("encode") do |given|
      assert_equal given[:tokens], encoding(given).encode(given[:text]), given
      assert_equal given[:tokens].size, encoding(given).count(given[:text]), given
    end
  end

  def test_encode_in_a_batch
    given = []
    cases("encode") { |one| given << one if one[:encoding] == "o200k_base" }
    tokens = Offlock::Tiktoken.get_encoding(:o200k_base).encode_batch(given.map { |one| one[:text] }, threads: 2)
    assert_equal(given.map { |one| one[:tokens] }, tokens)
  end

  def test_runs
    cases("runs") do |given|
      tokens = encoding(given).encode(given[:repeat].map { |text, count| text * count }.join)
      if given[:runs]
        assert_equal given[:runs], tokens.chunk_while { |a, b| a == b }.map { |run| [run.first, run.size] }, given
      else
        assert_equal given.values_at(:count, :crc), [tokens.size, crc(tokens)], given
      end
    end
  end

  def test_specials
    cases("specials") do |given|
      next if given[:error] # Ruby has no disallowed special tokens.

      allowed = given[:allowed] == "all" ? :all : given[:allowed]
      assert_equal given[:tokens], encoding(given).encode(given[:text], allowed_special: allowed), given
    end
  end

  def test_decode
    cases("decode") do |given|
      if given[:error]
        error = assert_raises(Offlock::Tiktoken::UnicodeError, RangeError) { encoding(given).decode(given[:ids]) }
        given[:error][:names].each { |name| assert_includes error.message, name.to_s }
      else
        assert_decodes given, encoding(given)
      end
    end
  end

  def assert_decodes(given, encoding)
    assert_equal bytes(given[:bytes]), encoding.decode_bytes(given[:ids]), given
    assert_equal given[:text], encoding.decode(given[:ids], errors: :replace), given
    assert_equal given[:parts].map { |part| bytes(part) },
                 given[:ids].map { |id| encoding.decode_single_token_bytes(id) }, given
  end

  def test_single_tokens
    cases("single_tokens") do |given|
      single = -> { encoding(given).encode_single_token(bytes(given[:bytes])) }
      given[:error] ? assert_raises(KeyError, &single) : assert_equal(given[:token], single.call, given)
    end
  end

  def test_encodings
    cases("encodings") do |given|
      encoding = Offlock::Tiktoken.get_encoding(given[:name])
      assert_equal given[:n_vocab], encoding.n_vocab
      assert_equal given[:specials], encoding.special_tokens.size
    end
  end

  def test_models
    models = JSON.parse(File.read(File.join(FOLDER, "models.json")))
    models["models"].each do |model, encoding|
      assert_equal encoding.to_sym, Offlock::Tiktoken.encoding_for_model(model).name
    end
    models["unknown"].each { |model| assert_nil Offlock::Tiktoken.encoding_for_model(model), model }
  end
end
