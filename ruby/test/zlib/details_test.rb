# frozen_string_literal: true

require "stringio"
require "timeout"
require "zlib"
require_relative "../support/zlib_comparison"
require_relative "../test_helper"

# Details that are easily different: the same code runs with the original and with offlock, and must give the same results.
class ZlibDetailsTest < Minitest::Test
  include Texts
  include ZlibComparison

  def written(zlib, **options, &block)
    file = StringIO.new(String.new)
    zlib::GzipWriter.wrap(file, nil, nil, **options, &block)
    Theirs.gunzip(file.string)
  end

  def test_a_block_gets_all_that_was_waiting
    noise = Random.new(1).bytes(100_000)
    packed = Theirs.deflate(noise)
    { finish: [], flush: [], deflate: ["more"] }.each do |name, arguments|
      assert_same(name) do |zlib|
        stream = zlib::Deflate.new << noise
        made = String.new
        stream.public_send(name, *arguments) { |chunk| made << chunk }
        zlib.inflate(made << stream.finish)
      end
    end
    assert_same do |zlib|
      stream = zlib::Inflate.new << packed
      [].tap { |made| stream.finish { |chunk| made << chunk } }.join
    end
  end

  def test_nothing_is_added_to_what_is_finished
    [["more"], ["more", 2], ["more", 4], ["", 4], [nil]].each do |arguments|
      assert_same(arguments.inspect) { |zlib| (zlib::Deflate.new << "text").tap(&:finish).deflate(*arguments) }
    end
    assert_same { |zlib| ((zlib::Deflate.new << "text").tap(&:finish) << "more").finish }
    [1, 2].each do |threads|
      options = threads == 1 ? {} : { threads: threads }
      file = StringIO.new(String.new)
      writer = Ours::GzipWriter.new(file, **options)
      writer.write("text")
      2.times { writer.flush(Ours::FINISH) }
      assert_raises(Theirs::StreamError) { writer.write("more") }
      assert_raises(Theirs::StreamError) { writer.flush }
      assert_equal Theirs.crc32("text"), writer.crc
      writer.close
      assert_equal "text", Theirs.gunzip(file.string)
    end
  end

  def test_what_follows_a_stream_is_no_content
    packed = "#{Theirs.deflate("text")}more".b
    assert_same { |zlib| [].tap { |made| zlib.inflate(packed) { |chunk| made << chunk } } }
    assert_equal "text", Ours.inflate(packed, progress: ->(*) {})
  end

  def test_a_line_that_is_cut_off_is_no_line
    packed = Theirs.gzip("id,amount\n1,1000\n2,2500000\n")
    [nil, "\n", 100].each do |limit|
      assert_same(limit.inspect) do |zlib|
        reader = zlib::GzipReader.new(StringIO.new(packed[0...-12]))
        lines = []
        begin
          loop { lines << (limit ? reader.gets(limit) : reader.gets) }
        rescue Theirs::Error => e
          lines << e.class
        end
      end
    end
  end

  def test_writers_write_bytes
    latin = "caf\xE9".dup.force_encoding("ISO-8859-1")
    [
      ->(writer) { writer.puts(latin, "é", "é".encode("UTF-16LE"), [1, [nil, 2]], "line\n") },
      ->(writer) { writer.puts && writer.puts([]) && writer.puts([[1].tap { |array| array << array }, nil]) },
      ->(writer) { writer.puts([1].tap { |array| array << array << 2 }) },
      ->(writer) { writer.print(latin, "é", [1, [2]]) },
      ->(writer) { writer.putc("éx") && writer.putc(65) && writer.putc(300) },
      ->(writer) { writer.write(latin, "é", 1) }
    ].each do |program|
      assert_same { |zlib| written(zlib, &program) }
      assert_same { |zlib| written(zlib, external_encoding: "ISO-8859-1", &program) }
      assert_same { |zlib| written(zlib, external_encoding: "ISO-8859-1", internal_encoding: "UTF-8", &program) }
    end
    assert_same { |zlib| written(zlib) { |writer| writer.putc("") } }
  end

  def test_closed_files_say_so
    packed = Theirs.gzip("text\n")
    {
      GzipWriter: %i[write flush finish pos tell crc level mtime os_code orig_name comment sync print],
      GzipReader: %i[read getc gets pos lineno external_encoding level mtime os_code orig_name comment sync unused eof? rewind]
    }.each do |name, methods|
      methods.each do |method|
        assert_same("#{name}##{method}") do |zlib|
          file = zlib.const_get(name).new(StringIO.new(packed.dup))
          file.close
          file.public_send(method)
        end
      end
    end
    assert_same { |zlib| zlib::GzipReader.new(StringIO.new(packed)).tap(&:close).gets(0) }
    assert_same { |zlib| zlib::GzipReader.new(StringIO.new(packed)).tap(&:close).ungetc("x") }
  end

  def test_no_more_is_read_than_is_needed
    { gets: [5], getc: [], readpartial: [100], getbyte: [] }.each do |name, arguments|
      reading, writing = IO.pipe(binmode: true)
      writer = Theirs::GzipWriter.new(writing)
      writer.write("abcde")
      writer.flush
      reader = Ours::GzipReader.new(reading)
      assert_equal "abcde"[0], [Timeout.timeout(5) { reader.public_send(name, *arguments) }].pack("a*")[0] unless name == :getbyte
      assert_equal 97, Timeout.timeout(5) { reader.getbyte } if name == :getbyte
    ensure
      [reading, writing].each(&:close)
    end
  end

  def test_characters_of_every_length_and_none
    ["aé本𐩡", "\xFFab", "\xE6\x9C", "é".b].each do |text|
      %w[UTF-8 UTF-16LE EUC-JP].each do |encoding|
        assert_same([text, encoding].inspect) do |zlib|
          reader = zlib::GzipReader.new(StringIO.new(Theirs.gzip(text)), external_encoding: encoding)
          reader.each_char.to_a
        end
      end
    end
  end

  def test_the_default_internal_encoding_counts
    before = Encoding.default_internal
    verbose, $VERBOSE = $VERBOSE, nil
    packed = Theirs.gzip("caf\xE9".b)
    ["UTF-8", nil].each do |internal|
      Encoding.default_internal = internal
      [{}, { external_encoding: "ISO-8859-1" }, { external_encoding: "ISO-8859-1", internal_encoding: "UTF-16LE" },
       { external_encoding: "UTF-8", internal_encoding: "ISO-8859-1" }].each do |options|
        assert_same(options.inspect) do |zlib|
          reader = zlib::GzipReader.new(StringIO.new(packed), **options)
          [reader.read, reader.external_encoding]
        end
      end
    end
  ensure
    Encoding.default_internal = before
    $VERBOSE = verbose
  end

  def test_nothing_has_the_originals_encoding
    packed = Theirs.gzip("")
    [[:read], [:read, 0], [:read, 5]].each do |call|
      assert_same(call.inspect) { |zlib| zlib::GzipReader.new(StringIO.new(packed)).public_send(*call) }
    end
    assert_same { |zlib| zlib::GzipReader.zcat(StringIO.new(Theirs.gzip("é"))) }
    assert_same { |zlib| zlib::Inflate.new.flush_next_in }
    assert_same { |zlib| zlib::Inflate.new.tap { |stream| stream.inflate(Theirs.deflate("é")) }.inflate("more") }
  end

  def test_progress_of_several_members_goes_on
    packed = Theirs.gzip(Random.new(1).bytes(2_000_000)) * 3
    reported = []
    Ours::GzipReader.zcat(StringIO.new(packed), progress: ->(done, _) { reported << done })
    assert_equal reported.sort, reported
    assert_equal packed.bytesize, reported.last
  end

  def test_a_stream_shows_itself_briefly
    assert_operator Ours::GzipReader.new(StringIO.new(Theirs.gzip("x" * 100_000))).tap(&:getc).inspect.size, :<, 100
    assert_operator (Ours::Deflate.new << ("x" * 100_000)).inspect.size, :<, 100
  end

  # Without explicit `close`, as many streams exist as with the original before a collection.
  def test_unclosed_streams_are_collected_in_time
    output, = run_ruby(<<~RUBY)
      text = ("some text to be compressed " * 200).freeze
      packed = Zlib.deflate(text)[0..-9].freeze
      3000.times { Offlock::Zlib::Deflate.new.deflate(text, 2) && Offlock::Zlib::Inflate.new.inflate(packed) }
      puts File.read("/proc/self/status")[/VmHWM:\\s*(\\d+)/, 1]
    RUBY
    skip "no /proc here" if output.strip.empty?
    assert_operator Integer(output), :<, 400_000
  end
end
