# frozen_string_literal: true

require "stringio"
require "tempfile"
require "tmpdir"
require_relative "../test_helper"

# Files, against Ruby's own StringIO.
class ZstdFilesTest < Minitest::Test
  Z = Offlock::Zstd
  TEXT = Array.new(30_000) { |number| "línea #{number} #{number * 7919 % 1009}\n#{"\n" if (number % 50).zero?}" }.join.freeze

  def packed(*texts) = texts.map { |text| Z.compress(text) }.join

  def reader(string = packed(TEXT[0, 10_000], TEXT[10_000..]), **) = Z::StreamReader.new(StringIO.new(string), **)

  CALLS = [
    [:read], [:read, 0], [:read, 10], [:read, 100_000], [:gets], [:gets, "e"], [:gets, nil], [:gets, ""], [:gets, 5],
    [:gets, "e", 9], [:getc], [:getbyte], [:readpartial, 7], [:readline], [:readchar], [:readbyte], [:eof?], [:pos], [:lineno],
    [:ungetc, "é"], [:ungetbyte, 65], [:readlines], [:rewind]
  ].freeze

  def result(object, call)
    object.public_send(*call)
  rescue EOFError => e
    e.class
  end

  def test_it_reads_as_an_io_does
    random = Random.new(5)
    30.times do
      text = TEXT[0, random.rand(2000)]
      ours = reader(packed(text[0, 500], text[500..] || "", ""), external_encoding: "UTF-8")
      theirs = StringIO.new(+text)
      50.times do
        call = CALLS.sample(random:)
        # A StringIO is at another position after it is given a character.
        next if call.first.start_with?("unget") || call == [:pos]

        expected = result(theirs, call)
        made = result(ours, call)
        assert expected == made, "#{call}: #{made.inspect} instead of #{expected.inspect}"
      end
    end
  end

  def test_what_is_put_back_comes_first
    file = reader(packed("abc"), external_encoding: "UTF-8")
    assert_equal "a", file.getc
    file.ungetc("é")
    file.ungetbyte(120)
    assert_equal "xébc", file.read
  end

  def test_lines_bytes_and_characters
    assert_equal TEXT.lines, reader(external_encoding: "UTF-8").each_line.to_a
    assert_equal TEXT.lines(chomp: true), reader(external_encoding: "UTF-8").each_line(chomp: true).to_a
    assert_equal TEXT.lines.size, reader.count
    assert_equal TEXT[0, 5000].bytes, reader(packed(TEXT[0, 5000])).each_byte.to_a
    assert_equal TEXT[0, 5000].chars, reader(packed(TEXT[0, 5000]), external_encoding: "UTF-8").each_char.to_a
    assert_equal TEXT.encode("UTF-16LE"), reader(external_encoding: "UTF-8", internal_encoding: "UTF-16LE").read
  end

  # Has `read` only, and gives less than it is asked for.
  class Drop
    def initialize(string) = @io = StringIO.new(string)
    def read(_size) = @io.read(3)
  end

  def test_files_of_any_kind
    read, write = IO.pipe
    thread = Thread.new { write.write(packed(TEXT)) && write.close }
    assert_equal TEXT, Z::StreamReader.new(read, external_encoding: "UTF-8").read
    thread.join
    assert_equal TEXT, Z::StreamReader.new(Drop.new(packed(TEXT)), external_encoding: "UTF-8").read
  end

  def test_a_content_before_damage_is_read_first
    [packed(TEXT)[0..-20], packed(TEXT) + packed(TEXT)[0, 9], "#{packed(TEXT)}nonsense".b].each do |bad|
      file = reader(bad, external_encoding: "UTF-8")
      lines = 0
      error = assert_raises(Z::Error) { lines += 1 while file.gets }
      assert_operator lines, :>, 20_000
      assert_match(/at byte \d+ of the input/, error.message)
      assert_raises(Z::Error) { file.read }
    end
    assert_raises(Z::Error) { reader("").read }
  end

  def test_max_output
    assert_equal TEXT.b, reader(packed(TEXT), max_output: TEXT.bytesize).read.b
    assert_raises(Z::OutputLimitError) { reader(packed(TEXT), max_output: TEXT.bytesize - 1).read }
  end

  def test_writing
    dict = Z::Dictionary.new(TEXT[0, 1000])
    [{}, { level: 19 }, { dict: }, { checksum_flag: true, nb_workers: 1 }].each do |options|
      io = StringIO.new(String.new)
      file = Z::StreamWriter.new(io, **options)
      file.write("a", :b, nil)
      file << TEXT << "c"
      file.puts("d", ["e"])
      file.print("f", 1)
      file.printf("%02d", 3)
      file.putc("é")
      file.putc(65)
      expected = "ab#{TEXT}cd\ne\nf103éA"
      assert_equal expected.bytesize, file.pos
      assert_same io, file.finish
      assert_equal [true, expected], [file.closed?, Z.decompress(io.string, dict: options[:dict]).force_encoding("UTF-8")]
      assert_raises(IOError) { file.write("x") }
      refute_predicate io, :closed?
    end
  end

  def test_a_flush_makes_everything_readable
    io = StringIO.new(String.new)
    file = Z::StreamWriter.new(io)
    file.write("x")
    assert_equal "", io.string
    file.flush
    assert_equal "x", Z::StreamingDecompress.new.decompress(io.string)
    file.sync = true
    file.write("y")
    assert_equal "xy", Z::StreamingDecompress.new.decompress(io.string)
    assert_nil file.close
    assert_predicate io, :closed?
  end

  def test_opening
    Dir.mktmpdir do |folder|
      path = "#{folder}/a.zst"
      assert_equal 7, Z::StreamWriter.open(path, level: 5) { |file| file.write("the end") }
      assert_equal "the end", Z::StreamReader.open(path, &:read)
      file = Z::StreamReader.open(path)
      assert_equal [7, nil, true], [file.read.size, file.close, file.closed?]
      assert_raises(IOError) { file.read }
      assert_raises(IOError) { file.gets }
      assert_raises(TypeError) { file.dup }
    end
  end

  # A subclass may have its own methods and arguments.
  class Log < Z::StreamWriter
    def initialize(io) = super(io, level: 1)
    def write(*lines) = super("> ", *lines)
  end

  def test_subclasses
    io = StringIO.new(String.new)
    Log.new(io).tap { |log| log.puts("line") }.finish
    assert_equal "> line\n", Z.decompress(io.string)
  end
end
