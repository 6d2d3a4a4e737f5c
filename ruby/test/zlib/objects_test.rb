# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "../test_helper"

# Streams and gzip files as objects: subclasses with names of their own, copies, frozen ones, and those that are initialized
# again, as Ruby's own Zlib has them.
class ZlibObjectsTest < Minitest::Test
  Z = Offlock::Zlib
  TEXT = "first\nsecond\n"
  NAMES = Dir[File.expand_path("../../lib/offlock/zlib/*.rb", __dir__)].map { |file| File.read(file) }

  # All names of variables, and of methods that the original does not have, that are used inside.
  VARIABLES = NAMES.flat_map { |source| source.scan(/(?<![\w:])@(?!offlock_)[a-z_]+/) }.uniq
  METHODS = NAMES.flat_map { |source| source.scan(/def (?:self\.)?(?!offlock_)([a-z_]+[?=]?)/) }.flatten.uniq

  # A subclass that has each of the names for something else.
  def self.crowded(base, original)
    own = METHODS.map(&:to_sym) - original.instance_methods - original.private_instance_methods
    Class.new(base) do
      own.each { |name| define_method(name) { |*| raise "#{name} is the subclass's" } }
      define_method(:take_names) { VARIABLES.each { |name| instance_variable_set(name, :mine) } && self }
      define_method(:left) { VARIABLES.reject { |name| instance_variable_get(name) == :mine } }
    end
  end

  %i[GzipReader GzipWriter Deflate Inflate].each do |name|
    const_set(:"Crowded#{name}", crowded(Z.const_get(name), Zlib.const_get(name)))
  end

  def test_there_are_names_to_collide_with
    assert_includes VARIABLES, "@plain"
    assert_includes METHODS, "fill"
  end

  def reader(text = TEXT, zlib: Z, **options) = zlib::GzipReader.new(StringIO.new(Zlib.gzip(text)), **options)

  def crowded_reader(**options) = CrowdedGzipReader.new(StringIO.new(Zlib.gzip(TEXT)), **options).take_names

  READINGS = {
    read: -> { _1.read }, some: -> { _1.read(3) }, gets: -> { [_1.gets, _1.gets, _1.gets] }, limit: -> { _1.gets(2) },
    lines: -> { _1.readlines }, each: -> { _1.each_line.to_a }, byte: -> { _1.getbyte }, char: -> { _1.getc },
    chars: -> { _1.each_char.to_a }, bytes: -> { _1.each_byte.to_a }, partial: -> { _1.readpartial(100) },
    back: ->(file) { file.getc && file.ungetc("x") || file.read }, byte_back: ->(file) { file.ungetbyte(65) || file.read },
    again: ->(file) { file.read && file.rewind && file.read }, paragraph: -> { _1.gets("") }, eof: -> { _1.eof? },
    crc: ->(file) { file.read && file.crc }, line: ->(file) { file.gets && file.lineno }, unused: -> { _1.unused },
    position: ->(file) { file.getc && file.pos }, encoding: -> { _1.external_encoding }, level: -> { _1.level },
    close: ->(file) { file.close && file.closed? }, finish: ->(file) { file.finish && file.closed? },
    sync: ->(file) { (file.sync = true) && file.sync }, number: ->(file) { (file.lineno = 7) && file.gets && file.lineno }
  }.freeze

  READINGS.each do |name, reading|
    define_method(:"test_a_subclass_of_the_reader_may_have_any_names_#{name}") do
      expected = reading.call(reader(zlib: Zlib))
      [{}, { threads: 1 }, { threads: 2 }, { max_output: 1000 }].each do |options|
        file = crowded_reader(**options)
        shown = reading.call(file)
        expected.nil? ? assert_nil(shown) : assert_equal(expected, shown, options.to_s)
        assert_empty file.left
      end
    end

    define_method(:"test_a_frozen_reader_reads_#{name}") do
      expected, found = [Zlib, Z].map { |zlib| reading.call(reader(zlib:).freeze) }
      expected.nil? ? assert_nil(found) : assert_equal(expected, found)
    end
  end

  def test_a_subclass_that_takes_the_names_before_the_file_is_opened
    early = Class.new(CrowdedGzipReader) do
      def initialize(...)
        take_names
        super
      end
    end
    assert_equal TEXT, early.new(StringIO.new(Zlib.gzip(TEXT))).read
  end

  def written(file, target)
    file.mtime = 5
    file.orig_name = "name"
    file.write("some ", "text")
    file << "!"
    file.print("a", 1)
    file.puts("line")
    file.putc("c")
    file.printf("%d", 5)
    file.flush
    at = file.pos
    file.close
    [at, Zlib.gunzip(target.string)]
  end

  def test_a_subclass_of_the_writer_may_have_any_names
    expected = StringIO.new(+"").then { |target| written(Zlib::GzipWriter.new(target), target) }
    [{}, { threads: 2 }].each do |options|
      target = StringIO.new(+"")
      file = CrowdedGzipWriter.new(target, **options).take_names
      assert_equal expected, written(file, target)
      assert_empty file.left
    end
  end

  def test_a_frozen_writer_writes
    expected, found = [Zlib, Z].map do |zlib|
      StringIO.new(+"").then { |target| written(zlib::GzipWriter.new(target).freeze, target) }
    end
    assert_equal expected, found
  end

  def test_subclasses_of_streams_may_have_any_names
    deflate = CrowdedDeflate.new.take_names
    packed = deflate.deflate("a" * 100_000) << deflate.flush << deflate.finish
    inflate = CrowdedInflate.new.take_names
    assert_equal "a" * 100_000, inflate.inflate(packed)
    chunks = []
    CrowdedInflate.new.take_names.inflate(packed) { |chunk| chunks << chunk }
    assert_equal "a" * 100_000, chunks.join
    assert_equal "a" * 100_000, inflate.dup.then { |copy| copy.reset || copy.inflate(packed) }
    assert_empty deflate.left + inflate.left
  end

  QUESTIONS = %i[read gets getc getbyte pos eof? mtime lineno crc rewind sync to_io unused external_encoding readlines level
                 orig_name comment os_code closed? finish close].freeze

  # What a method answers, or the error that it raises.
  def answer(file, name)
    file.public_send(name)
  rescue StandardError => e
    [e.class, e.message]
  end

  %i[dup clone].each do |copy|
    define_method(:"test_a_#{copy}_of_a_reader_is_closed") do
      expected, found = [Zlib, Z].map do |zlib|
        file = reader(zlib:)
        file.gets
        other = file.public_send(copy)
        QUESTIONS.map { |name| [name, answer(other, name)] } << file.gets
      end
      assert_equal expected, found
    end

    define_method(:"test_a_#{copy}_of_a_writer_is_closed") do
      expected, found = [Zlib, Z].map do |zlib|
        file = zlib::GzipWriter.new(StringIO.new(+""))
        other = file.tap { _1.write("text") }.public_send(copy)
        (QUESTIONS & file.methods).map { |name| [name, answer(other, name)] } << answer(other, :write)
      end
      assert_equal expected, found
    end
  end

  def test_one_that_was_only_allocated_is_closed
    [Zlib, Z].each do |zlib|
      assert_raises(Zlib::GzipFile::Error) { zlib::GzipReader.allocate.read }
      assert_raises(Zlib::GzipFile::Error) { zlib::GzipWriter.allocate.write("text") }
      assert_predicate zlib::GzipReader.allocate, :closed?
    end
  end

  # (The original mixes what it has of both files.)
  def test_one_that_is_initialized_again_forgets_the_file_before
    file = reader
    file.read
    assert_predicate file, :eof?
    file.send(:initialize, StringIO.new(Zlib.gzip("other")))
    refute_predicate file, :eof?
    assert_equal ["other", 5], [file.read, file.pos]
  end
end
