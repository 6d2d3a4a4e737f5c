# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "../support/zlib_comparison"
require_relative "../test_helper"

# Former differences: the same code runs with the original and with offlock, in the main Ractor and in another one.
class ZlibDifferencesTest < Minitest::Test
  include Texts
  include ZlibComparison

  def test_no_public_method_is_missing
    classes = %i[ZStream Deflate Inflate GzipFile GzipWriter GzipReader]
    classes.each do |name|
      missing = Theirs.const_get(name).public_instance_methods - Ours.const_get(name).public_instance_methods
      assert_empty missing, name
    end
    assert_empty Theirs.singleton_methods - Ours.singleton_methods
  end

  def test_a_closed_file_does_not_report_a_bad_footer_again
    packed = Theirs.gzip("hello\nworld\n")
    files = [-8, -4].map { |place| packed.dup.tap { _1.setbyte(place, _1.getbyte(place) ^ 1) } } << packed[..-3] << packed[..-9]
    files << packed.byteslice(0, 14) << packed.dup.tap { _1.setbyte(12, 0xff) }
    ways = [%i[read read read close close], %i[read close close], %i[gets gets gets gets close], %i[read unused close],
            %i[read eof? eof? read], %i[read finish finish], %i[close close], %i[read rewind read rewind close]]
    files.each do |file|
      ways.each do |way|
        outcomes = [Theirs, Ours].map do |zlib|
          reader = zlib::GzipReader.new(StringIO.new(file))
          way.map { |method| outcome(reader) { |value| value.public_send(method).then { _1.is_a?(StringIO) ? :io : _1 } } }
        rescue Theirs::Error => e
          e.class
        end
        # The original reports bad data when the file is opened, offlock after the data before it has been read.
        next if outcomes.include?(Theirs::DataError)

        assert_equal(*outcomes, "#{way} of #{file.inspect}")
      end
    end
  end

  def test_seeking_in_nothing_finds_nothing
    assert_same { |zlib| zlib::Inflate.new.sync("") }
    assert_same { |zlib| zlib::Inflate.new.tap { _1.sync("noise") }.sync("") }
    assert_same { |zlib| zlib::Inflate.new.sync(nil) }
    assert_same { |zlib| zlib::Inflate.new.tap { |stream| stream.inflate(Theirs.deflate("text")) }.sync("") }
    stream = Theirs::Deflate.new
    packed = stream.deflate("one " * 100, Theirs::FULL_FLUSH) + stream.deflate("two " * 100, Theirs::FULL_FLUSH)
    assert_same { |zlib| zlib::Inflate.new.then { [_1.sync(packed), _1.sync(""), _1.avail_in] } }
  end

  def writer(zlib)
    zlib::GzipWriter.new(StringIO.new(String.new))
  end

  def test_times_are_taken_as_the_original_takes_them
    [2**33, 2**32, (2**32) - 1, 2**31, 0, -1, -(2**31), -(2**31) - 1, 1.9, "12", "x", nil, Time.at(5), :x, 2**70].each do |time|
      assert_same(time.inspect) { |zlib| writer(zlib).then { [_1.mtime = time, _1.mtime] } }
    end
    assert_same do |zlib|
      writer(zlib).then do |file|
        file.write("")
        file.mtime = 1
      end
    end
  end

  def test_names_keep_their_encoding
    ["name", "nämé", "n\0m", "n\xE4m".dup.force_encoding("ISO-8859-1"), "name".encode("UTF-16LE"), "b\xFF".b, "", "\0"].each do |name|
      assert_same(name.inspect) { |zlib| writer(zlib).then { [_1.orig_name = name, _1.orig_name, _1.comment = name, _1.comment] } }
      assert_same(name.inspect) do |zlib|
        file = StringIO.new(String.new)
        zlib::GzipWriter.wrap(file) { |gz| gz.orig_name = gz.comment = name; gz.mtime = 1 } # rubocop:disable Style/Semicolon
        zlib::GzipReader.new(StringIO.new(file.string)).then { [_1.orig_name, _1.comment, file.string] }
      rescue ArgumentError => e
        e.class
      end
    end
    [nil, 1, :name].each { |name| assert_same(name.inspect) { |zlib| writer(zlib).orig_name = name } }
  end

  def test_the_last_line_is_the_callers
    packed = Theirs.gzip("one\ntwo\nthree")
    assert_same do |zlib|
      reader = zlib::GzipReader.new(StringIO.new(packed))
      [reader.gets, $_, reader.readline, $_, reader.gets("r"), $_, reader.gets(nil), $_, reader.gets, $_]
    end
    assert_same do |zlib|
      $_ = "before"
      zlib::GzipReader.new(StringIO.new(packed)).each_line { |line| line }
      $_
    end
  end

  def globals(**values)
    verbose, $VERBOSE = $VERBOSE, nil
    before = [$/, $,, $\]
    $/, $,, $\ = values.values_at(:input, :between, :output)
    yield
  ensure
    $/, $,, $\ = before
    $VERBOSE = verbose
  end

  def test_the_separators_count
    packed = Theirs.gzip("one,two\nthree,four\n\n\nfive")
    [",", "\n", "", nil, "four\n", "ee,"].each do |input|
      globals(input: input) do
        assert_same(input.inspect) { |zlib| zlib::GzipReader.new(StringIO.new(packed)).each_line.to_a }
        assert_same(input.inspect) { |zlib| zlib::GzipReader.new(StringIO.new(packed)).then { |file| Array.new(8) { file.gets } } }
        assert_same(input.inspect) { |zlib| zlib::GzipReader.new(StringIO.new(packed)).readlines(5) }
      end
    end
    globals(input: "\n", between: "; ", output: "!\n") do
      assert_same do |zlib|
        $_ = "last"
        packed = StringIO.new(String.new)
        file = zlib::GzipWriter.new(packed)
        file.print
        file.print("a", 1, nil, [:b])
        file.puts("c", ["d", ["e\n"]])
        file.finish
        Theirs.gunzip(packed.string)
      end
    end
  end

  RACTOR_PROGRAM = <<~RUBY
    require "stringio"
    answers = [Zlib, Offlock::Zlib].map do |zlib|
      ractor = Ractor.new(zlib) do |zlib|
        packed = zlib.gzip("one\\ntwo\\nthree\\n")
        file = StringIO.new(String.new)
        zlib::GzipWriter.wrap(file) do |gz|
          gz.print("a", 1)
          gz.puts("b", ["c"])
          gz.printf("%d", 3)
          gz << "d"
          gz.putc("e")
        end
        reader = -> { zlib::GzipReader.new(StringIO.new(packed)) }
        [reader.().each_line.to_a, reader.().gets, reader.().tap(&:gets).readline, reader.().readlines, reader.().gets(2),
         reader.().each_byte.first(2), reader.().each_char.first(2), zlib.gunzip(file.string), zlib.crc32("x"), zlib.crc32("x", 5),
         zlib::GzipReader.zcat(StringIO.new(packed)), (zlib::Deflate.new << "x").finish, zlib::Inflate.new.inflate(zlib.deflate("x"))]
      end
      ractor.value
    end
    puts answers[0] == answers[1] ? "same" : answers.inspect
  RUBY

  def test_all_of_it_works_in_a_ractor
    output, = run_ruby(RACTOR_PROGRAM)
    assert_match(/^same$/, output)
  end
end
