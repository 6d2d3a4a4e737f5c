# frozen_string_literal: true

require "bigdecimal"
require "date"
require "json"
require "objspace"
require "stringio"
require "time"
require "timeout"
require_relative "test_helper"

# Compares Offlock::Strings with String's own methods.
class StringsTest < Minitest::Test
  include Texts

  PIECES = ["", "a", "é", "ж", "𐩡", "\r", "\n", "\r\n", ",", ", ", " ", "exactly 15 byte", "exactly 16 bytes",
            "a line that is a little longer", "día—noche, and so on, and so on", "x" * 700].freeze
  LINE = "a line of some length, of which there are many more\n"
  RELEASES = %i[auto always never].freeze

  def strings = Offlock::Strings

  # Returns texts with all combinations of kinds of pieces.
  def samples(count = 300)
    random = Random.new(7)
    Array.new(count) { Array.new(random.rand(30)) { PIECES.sample(random:) }.join }
  end

  # Asserts that Strings are equal in contents, encoding, validity, class and frozen state.
  def assert_same_strings(expected, found)
    assert_equal expected, found
    assert_equal(expected.map(&:encoding), found.map(&:encoding))
    assert_equal(expected.map(&:valid_encoding?), found.map(&:valid_encoding?))
    assert_equal(expected.map(&:ascii_only?), found.map(&:ascii_only?))
    assert_equal [[String, false]], found.map { |string| [string.class, string.frozen?] }.uniq unless found.empty?
  end

  def assert_all_cut_as_by_ruby(text, separators)
    RELEASES.each do |release|
      assert_same_strings text.lines, strings.lines(text, release:)
      assert_same_strings text.lines(chomp: true), strings.lines(text, chomp: true, release:)
      separators.each do |separator|
        # A separator of one space has a special meaning for String#split, and a Regexp takes no invalid text.
        pattern = separator == " " ? / / : separator
        assert_same_strings text.split(pattern, -1), strings.split(text, separator, release:)
      end
    end
  end

  def test_pieces_are_those_of_ruby
    samples.each { |text| assert_all_cut_as_by_ruby(text, [",", ", ", "é", " ", "\n", "line"]) }
  end

  def test_what_ruby_knows_of_the_text_does_not_matter
    { "#{LINE * 5}x,y" => [","], "día\n" * 9 => ["í"], "broken \xFF\n, \xE2\x80\n," => [] }.each do |text, separators|
      text = text.dup
      assert_all_cut_as_by_ruby(text, separators)
      text.valid_encoding?
      assert_all_cut_as_by_ruby(text, separators)
    end
  end

  def test_a_broken_text_is_split_all_the_same
    assert_raises(ArgumentError) { "a,\xFF,b".split(",") }
    assert_equal ["a", "\xFF", "b, and a line of some length\xE2"],
                 strings.split("a,\xFF,b, and a line of some length\xE2", ",").then { |a, b, *c| [a, b, c.join(",")] }
  end

  def test_every_encoding
    text = "plain\r\nnaïve, and a line of some length\n,,\n"
    Encoding.list.reject(&:dummy?).each do |encoding|
      encoded = text.encode(encoding, undef: :replace).b.force_encoding(encoding)
      next unless encoded.valid_encoding? # Ruby's transcoding to Big5-UAO gives invalid text

      comma = ",".encode(encoding)
      assert_same_strings encoded.lines, strings.lines(encoded)
      assert_same_strings encoded.lines(chomp: true), strings.lines(encoded, chomp: true)
      assert_same_strings encoded.split(comma, -1), strings.split(encoded, comma)
    rescue Encoding::ConverterNotFoundError
      next
    end
  end

  def test_a_separator_inside_another_character_is_none
    text = "表\\裏, and a line of some length".encode("Shift_JIS") # the last byte of the first character is a backslash
    assert_equal text.split("\\", -1), strings.split(text, "\\")
    assert_equal 2, strings.split(text, "\\").size
  end

  def test_offsets
    text = samples.join
    offsets = Array.new(500) { |n| text.bytesize * n / 499 }
    expected = offsets.each_cons(2).map { |from, to| text.byteslice(from...to) }
    RELEASES.each do |release|
      assert_same_strings expected, strings.from_offsets(text, offsets, release:)
      assert_same_strings expected, strings.from_offsets(text, offsets.pack("q*"), release:)
    end
    assert_equal [[], [], ["", "ab"]], [[], [1], [1, 1, 3]].map { |few| strings.from_offsets("xab", few) }
    assert_equal ["\x00\xFF".b], strings.from_offsets("\x00\xFF".b, [0, 2])
  end

  def test_bad_values_are_named
    { [-1] => "offset 0 is -1, not in 0..=3", [0, 4] => "offset 1 is 4, not in 0..=3",
      [2, 1] => "offset 1 is 1, less than the one before it, 2" }.each do |offsets, message|
      assert_equal message, assert_raises(ArgumentError) { strings.from_offsets("abc", offsets) }.message
    end
    assert_match(/8 bytes each, got 3/, assert_raises(ArgumentError) { strings.from_offsets("abc", "abc") }.message)
    assert_match(/empty separator/, assert_raises(ArgumentError) { strings.split("abc", "") }.message)
    assert_match(/invalid byte sequence/, assert_raises(ArgumentError) { strings.split("abc", "\xFF") }.message)
    assert_match(/release must be/, assert_raises(ArgumentError) { strings.lines("abc", release: :often) }.message)
    assert_raises(Encoding::CompatibilityError) { strings.split("é", "é".encode("ISO-8859-1")) }
    [-> { strings.lines(5) }, -> { strings.split("a", nil) }, -> { strings.from_offsets("a", [nil]) },
     -> { strings.from_offsets("a", 3) }].each { |call| assert_raises(TypeError, &call) }
  end

  def test_what_is_as_good_as_a_string_will_do
    text = Object.new
    def text.to_str = +"a,b"
    assert_equal [["a,b"], %w[a b], ["a"]],
                 [strings.lines(text), strings.split(text, ","), strings.from_offsets(text, [0, 1])]
    assert_equal [String], strings.lines(Class.new(String).new(LINE * 2)).map(&:class).uniq
  end

  def test_pieces_share_the_bytes_of_the_text
    text = LINE * 1000
    pieces = strings.lines(text)
    assert_equal([ObjectSpace.memsize_of("")], pieces.map { |piece| ObjectSpace.memsize_of(piece) }.uniq)
    assert_equal([text.bytesize], pieces.flat_map { |piece| roots(piece) }.map(&:bytesize).uniq)
    compact = strings.compact(pieces.first(3))
    assert_equal pieces.first(3), compact
    assert_empty(compact.flat_map { |piece| roots(piece) })
  end

  # Returns the Strings whose bytes a String shares.
  def roots(piece)
    ObjectSpace.reachable_objects_from(piece).grep(String)
  end

  # Ruby scans the rest of such a text again for each piece, which would take minutes.
  def test_a_long_text_with_one_wide_character_at_its_end
    text = "#{LINE * 200_000}é"
    assert text.valid_encoding?
    assert_equal 200_001, strings.lines(text).size
  end

  def test_pieces_and_text_can_be_changed
    text = LINE * 3
    pieces = strings.lines(text)
    text[0] = "THE TEXT"
    assert_equal [LINE] * 3, pieces
    pieces[1] << "and more"
    pieces[2].upcase!
    assert_equal [LINE, "#{LINE}and more", LINE.upcase], pieces
    assert_equal "THE TEXT#{(LINE * 3)[1..]}", text
  end

  # A piece is followed by the next one, not by a zero, so code that reads beyond its end would return more.
  def test_code_in_c_sees_where_a_piece_ends
    fields = ["0000000000000012345", "0000000000000000.5", "0000000000000001/3", "2020-01-02T03:04:05Z", "[1, 2, 3, 4, 5, 6, 78]",
              "%Y-%m-%d %H:%M:%S %z", "a_name_that_is_long", "/tmp/a/path/that/is/long"]
    text = "#{fields.join("9")}9"
    offsets = fields.inject([0]) { |ends, field| [*ends, ends.last + field.bytesize, ends.last + field.bytesize + 1] }
    found = strings.from_offsets(text, offsets).values_at(*(0...fields.size).map { |n| 2 * n })
    assert_equal(*[fields, found].map { |given| read(*given) })
    assert_equal fields, found
  end

  def read(integer, float, rational, time, json, format, name, path)
    [Integer(integer), integer.to_i, Float(float), float.to_f, BigDecimal(float), Rational(rational), Complex(rational),
     Time.iso8601(time), DateTime.parse(time), JSON.parse(json), Time.at(0).utc.strftime(format), name.to_sym, name.hash,
     File.basename(path), File.exist?(path), File.expand_path(path), name.unpack("a*"), name.crypt("ab"), name.sum,
     Regexp.new(name).source, name =~ /long\z/, ENV.fetch(name, nil), name.inspect, name.encode("UTF-16LE"), name.to_c,
     DateTime.strptime("2020-01-02 03:04:05 +0000", format), `echo #{path}`, StringIO.new(json).read, json[1..].succ,
     { name => 1 }.key(1), Marshal.load(Marshal.dump(name)), Process.clock_gettime(0) && name.dup.freeze, -name]
  end

  def everything
    text = "#{LINE * 9}día—noche, día—noche, día—noche\n" * 2
    [strings.lines(text, release: :always), strings.split(text, ", ", release: :always), strings.lines(LINE),
     strings.from_offsets(text, (0..text.bytesize).step(17).to_a), strings.lines(text.encode("UTF-16LE")),
     strings.compact(strings.lines(text.encode("ISO-8859-15", undef: :replace), chomp: true))]
  end

  def test_compaction
    skip "no compaction here" unless GC.respond_to?(:verify_compaction_references)
    expected, found = Array.new(2) { everything }
    short = strings.lines(LINE * 3) # of a text that is inside its object
    GC.verify_compaction_references(expand_heap: true, toward: :empty)
    assert_equal expected, found
    assert_equal [LINE] * 3, short
  end

  def test_compaction_meanwhile
    skip "no compaction here" unless GC.respond_to?(:compact)
    expected = everything
    thread = Thread.new { Array.new(10) { everything } }
    (GC.compact && sleep(0.002)) while thread.alive?
    assert_equal [expected], thread.value.uniq
  end

  def test_a_text_lives_as_long_as_its_pieces
    piece = strings.lines(LINE * 10_000)[5000]
    3.times { GC.start && (LINE * 10_000) }
    assert_equal LINE, piece
  end

  def test_memory_does_not_grow
    text = LINE * 20_000
    resident = -> { File.read("/proc/self/statm").split[1].to_i * 4096 }
    skip "no /proc here" unless File.exist?("/proc/self/statm")
    20.times { strings.lines(text) }
    before = resident.()
    60.times { strings.lines(text) }
    assert_operator resident.() - before, :<, 30_000_000
  end

  def test_many_threads
    text = samples.join
    expected = text.lines
    threads = Array.new(8) { Thread.new { Array.new(10) { strings.lines(text, release: :always) } } }
    assert_equal [expected], threads.flat_map(&:value).uniq
  end

  def test_ractors
    experimental, Warning[:experimental] = Warning[:experimental], false
    text = LINE * 3000
    ractors = Array.new(3) do
      Ractor.new(text) { |given| Ractor.make_shareable(Offlock::Strings.lines(given, release: :always)) }
    end
    assert_equal [[LINE] * 3000], ractors.map(&:value).uniq
    moved = Ractor.new { Ractor.receive.map(&:upcase) }
    moved.send(strings.lines(text), move: true)
    assert_equal [LINE.upcase], moved.value.uniq
  ensure
    Warning[:experimental] = experimental
  end

  def test_interrupts
    text = ("x\n" * 30_000_000).freeze
    RELEASES.each do |release|
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { loop { strings.lines(text, release:) } } }
      thread = Thread.new { loop { strings.split(text, "\n", release:) } }
      sleep(0.03)
      thread.kill
      assert thread.join(2), "split goes on"
    end
  end
end
