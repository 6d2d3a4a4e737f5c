# frozen_string_literal: true

require "minitest/autorun"
require "stringio"
require "zlib"
require "offlock/zlib"

# Compares gzip files of Offlock::Zlib with those of Ruby's own Zlib.
class GzipTest < Minitest::Test
  Ours = Offlock::Zlib
  Theirs = ::Zlib
  TEXT = (File.read(__FILE__) * 300)

  def write(zlib, text, **options)
    file = StringIO.new(+"".b)
    zlib::GzipWriter.wrap(file, **options) { |gz| text.each_char.each_slice(77_777) { |piece| gz.write(piece.join) } }
    file.string
  end

  def test_each_reads_the_other
    ["", "x", TEXT].each do |text|
      [1, 0, 3].each do |threads|
        assert_equal text, Theirs::GzipReader.new(StringIO.new(write(Ours, text, threads: threads))).read
      end
      assert_equal text, Ours::GzipReader.new(StringIO.new(write(Theirs, text))).read
    end
  end

  # Calls the same methods on both readers, and compares what they return.
  def test_readers_agree
    text = "größe 日本\n\n\nzweite\r\nlang #{"x" * 5000}\n" * 60 + "end"
    packed = Theirs.gzip(text)
    random = Random.new(1)
    200.times do
      readers = [Ours, Theirs].map { |zlib| zlib::GzipReader.new(StringIO.new(packed), external_encoding: "UTF-8") }
      30.times do
        call = [[:gets], [:gets, ""], [:gets, nil, random.rand(1..9000)], [:gets, random.rand(1..50)], [:getc],
                [:getbyte], [:read, random.rand(9000)], [:gets, "lang"], [:eof?], [:pos], [:lineno],
                [:ungetc, "é"], [:ungetbyte, 65]].sample(random: random)
        ours, theirs = readers.map { |reader| reader.send(*call) }
        theirs.nil? ? assert_nil(ours, call.inspect) : assert_equal(theirs, ours, call.inspect)
        assert_equal theirs.encoding, ours.encoding, call.inspect if theirs.is_a?(String)
      end
      ours, theirs = readers.map(&:read)
      assert_equal theirs, ours
    end
  end

  def test_all_members
    parts = [TEXT[0, 50_000], "", TEXT[50_000..]]
    packed = parts.map { |part| Theirs.gzip(part) }.join
    assert_equal TEXT.b, Ours::GzipReader.zcat(StringIO.new(packed))
    assert_equal TEXT.b, Ours::GzipReader.zcat(StringIO.new(packed), threads: 0)
    assert_equal TEXT, Ours::GzipReader.zcat(StringIO.new(packed), external_encoding: TEXT.encoding)
    assert_equal parts.flat_map(&:lines), [].tap { |lines| Ours::GzipReader.zcat(StringIO.new(packed)) { |line| lines << line } }
    assert_equal TEXT.b, Ours.gunzip_all(packed, threads: 2)
    reader = Ours::GzipReader.new(StringIO.new(packed))
    assert_equal parts[0], reader.read
    assert_equal packed.byteslice(Theirs.gzip(parts[0]).bytesize..).byteslice(0, reader.unused.bytesize), reader.unused
  end

  def test_a_pipe_needs_no_seeking
    reading, writing = IO.pipe(binmode: true)
    feeder = Thread.new { writing.write(Theirs.gzip(TEXT), Theirs.gzip("more")) && writing.close }
    assert_equal "#{TEXT}more".b, Ours::GzipReader.zcat(reading)
    feeder.join
  end

  def test_headers
    [[Ours, Theirs], [Theirs, Ours]].each do |writer, reader|
      file = StringIO.new(+"".b)
      gz = writer::GzipWriter.new(file, 9)
      gz.mtime = 12_345
      gz.orig_name = "name"
      gz.comment = "comment"
      gz.puts("text", %w[in lines])
      gz.printf("%05d", 7)
      gz.putc(65)
      crc = gz.crc
      gz.finish
      gz = reader::GzipReader.new(StringIO.new(file.string))
      assert_equal "text\nin\nlines\n00007A", gz.read
      assert_equal [12_345, "name", "comment", 9, crc], [gz.mtime.to_i, gz.orig_name, gz.comment, gz.level, gz.crc]
    end
  end

  def test_damage_comes_after_what_is_good
    packed = Theirs.gzip(TEXT)
    packed.setbyte(-6, packed.getbyte(-6) ^ 1)
    reader = Ours::GzipReader.new(StringIO.new(packed))
    assert_equal TEXT.b, reader.read(TEXT.bytesize)
    assert_raises(Ours::GzipFile::CRCError) { reader.read(1) }
    assert_raises(Ours::GzipFile::Error) { Ours::GzipReader.new(StringIO.new(packed[0, 500])).read }
    reader = Ours::GzipReader.new(StringIO.new(packed[0..-9]))
    assert_equal TEXT, reader.read
    assert_raises(Ours::GzipFile::NoFooter) { reader.close }
  end

  # Returns a file with members of many sizes, as in BGZF and in concatenated files.
  def many_members
    sizes = [0, 1, 500, 60_000, 300_000]
    parts = Array.new(60) { |n| TEXT.b.byteslice(n * 1000, sizes[n % 5]) }
    [parts.join, parts.map { |part| Theirs.gzip(part) }.join]
  end

  WAYS_TO_END = {
    read: -> { [_1.read, _1.read] }, eof: -> { [_1.read(12), _1.eof?, _1.read(1)] }, unused: -> { [_1.read, _1.unused] },
    lines: -> { [_1.gets, _1.gets, _1.eof?] }, close: -> { [_1.read, _1.close] }, every: -> { _1.each_byte.to_a }
  }.freeze

  def test_a_wrong_footer_is_reported_where_the_original_reports_it
    packed = Theirs.gzip("hello\nworld\n")
    damaged = [-8, -4].map { |place| packed.dup.tap { _1.setbyte(place, _1.getbyte(place) ^ 1) } }
    [packed, *damaged, packed[..-3], packed[..-9], "#{packed}more".b].each do |file|
      WAYS_TO_END.each do |way, read|
        found, expected = [Ours, Theirs].map do |zlib|
          read.call(zlib::GzipReader.new(StringIO.new(file))).map { |value| value.is_a?(StringIO) ? value.pos : value }
        rescue zlib::Error, EOFError => e
          e.class.name.delete_prefix("Offlock::")
        end
        assert_equal expected, found, "#{way} of #{file.inspect}"
      end
    end
  end

  def test_members_on_threads_are_what_they_are_in_order
    plain, packed = many_members
    reader = Ours::GzipReader.new(StringIO.new(packed), threads: 2)
    assert_equal plain.byteslice(0, 100_000), reader.read(100_000)
    assert_equal plain.byteslice(100_000..), reader.read.b
    assert_predicate reader, :eof?
    reader.rewind
    assert_equal plain.lines, reader.each_line.map(&:b)
    assert_nil reader.unused
    lines = []
    Ours::GzipReader.zcat(StringIO.new(packed), threads: 3) { |line| lines << line.b }
    assert_equal plain.lines, lines
  end

  def all_of(packed, threads)
    made = String.new
    reader = Ours::GzipReader.new(StringIO.new(packed), threads: threads)
    loop { made << (reader.read(10_000) || break) }
    [made, nil]
  rescue Ours::Error => e
    [made, e.class, e.message]
  end

  def test_damage_on_threads_is_found_where_it_is
    _, packed = many_members
    (100..packed.bytesize).step(packed.bytesize / 15).each do |at|
      bad = packed.dup.tap { |bytes| bytes.setbyte(at, bytes.getbyte(at) ^ 0x10) }
      cut = packed.byteslice(0, at)
      # On few threads and on many, each member waits for its turn, so the results must be equal.
      [bad, cut].each { |file| assert_equal all_of(file, 16), all_of(file, 2) }
      assert_raises(Ours::Error) { Ours::GzipReader.zcat(StringIO.new(cut)) } if all_of(cut, 2)[1]
    end
  end

  def test_every_way_to_read_is_limited
    bomb = Theirs.gzip("\0" * 3_000_000)
    [{}, { threads: 2 }].each do |options|
      file = StringIO.new(bomb * 3)
      assert_raises(Ours::OutputLimitError) { Ours::GzipReader.zcat(file, max_output: 8_999_999, **options) }
      assert_equal 9_000_000, Ours::GzipReader.zcat(StringIO.new(bomb * 3), max_output: 9_000_000, **options).bytesize
      assert_raises(Ours::OutputLimitError) { Ours::GzipReader.new(StringIO.new(bomb), max_output: 2_999_999, **options).read }
    end
    assert_raises(Ours::OutputLimitError) { Ours.gunzip_all(bomb * 3, max_output: 8_999_999) }
    assert_raises(Ours::OutputLimitError) { Ours.gunzip(bomb, max_output: 2_999_999) }
  end

  def test_progress_is_reported
    plain = Random.new(7).bytes(3_500_000)
    reported = []
    packed = Ours.gzip(plain, progress: ->(*step) { reported << step })
    assert_equal [1, 2, 3].map { |n| [n << 20, plain.bytesize] } + [[plain.bytesize] * 2], reported
    readings = [->(progress) { Ours.gunzip(packed, progress: progress) },
                ->(progress) { Ours.gunzip_all(packed, threads: 2, progress: progress) },
                ->(progress) { Ours::GzipReader.zcat(StringIO.new(packed), threads: 2, progress: progress).b },
                ->(progress) { Ours::GzipReader.wrap(StringIO.new(packed), progress: progress, &:read).b }]
    readings.each do |reading|
      reported.clear
      assert_equal plain, reading.(->(*step) { reported << step })
      assert_equal [packed.bytesize] * 2, reported.last
      assert_raises(ZeroDivisionError) { reading.(->(*) { 1 / 0 }) }
    end
    assert_operator reported.size, :>, 1
  end

  def test_threads_cost_little_size
    assert_operator write(Ours, TEXT, threads: 2).bytesize, :<, Theirs.gzip(TEXT).bytesize * 1.02 + 500
  end
end
