# frozen_string_literal: true

require "stringio"
require_relative "../bench"
require "offlock"

# Compares calls that programs make once a line or once a response, in Offlock::Zlib and in Ruby's own Zlib:
# script/ruby bench/zlib/small_calls.rb [--json FILE]
class SmallCalls
  MODULES = { "offlock" => Offlock::Zlib, "zlib" => Zlib }.freeze
  LINES = 200_000
  CALLS = 5_000

  def initialize
    @plain = Array.new(LINES) { |number| "#{number} some line of text #{number * 7919 % 10_007}\n" }.join
    @packed = Zlib.gzip(@plain)
    @pieces = @plain.byteslice(0, 1_000_000).scan(/.{100}/m)
    prose = Bench.texts.fetch("prose").b
    @responses = Array.new(CALLS) { |number| prose.byteslice(number * 1000, 1000) }
    @small = Zlib.gzip("x" * 100)
  end

  # Returns the microseconds of a call, and the speed of offlock as a multiple of zlib's. Compares the answers first.
  def run
    rows.to_h do |name, (count, row)|
      calls = MODULES.transform_values { |zlib| ->(*) { row.call(zlib) } }
      answers = calls.values.map(&:call)
      abort "#{name}: another answer" unless answers.uniq.one?
      times = Bench.alternate(calls, 9).transform_values { |values| Bench.median(values) }
      [name, { times_zlib: (times["zlib"] / times["offlock"]).round(2),
               us_each: times.transform_values { |time| (time / count * 1e6).round(3) } }]
    end
  end

  private

  def rows
    lines.merge(objects).merge(pieces)
  end

  def lines
    { "each_line" => [LINES, ->(zlib) { count { |one| reader(zlib).each_line(&one) } }],
      "gets" => [LINES, ->(zlib) { reader(zlib).then { |file| count { |one| one.call while file.gets } } }],
      "readlines" => [LINES, ->(zlib) { reader(zlib).readlines.size }],
      "read(100)" => [@plain.bytesize / 100, ->(zlib) { reads(reader(zlib)) }] }
  end

  def objects
    { "Deflate.new, close" => [CALLS, ->(zlib) { CALLS.times { zlib::Deflate.new.close } }],
      "Inflate.new, close" => [CALLS, ->(zlib) { CALLS.times { zlib::Inflate.new.close } }],
      "GzipWriter.new, close" => [CALLS, ->(zlib) { CALLS.times { zlib::GzipWriter.new(StringIO.new(String.new)).close } }],
      "GzipReader.new, close" => [CALLS, ->(zlib) { CALLS.times { zlib::GzipReader.new(StringIO.new(@small)).close } }],
      "GzipWriter: 1 KB" => [CALLS, ->(zlib) { @responses.sum { |text| respond(zlib, text) } }],
      "GzipWriter: 1 KB, flushed" => [CALLS, ->(zlib) { @responses.sum { |text| respond(zlib, text, &:flush) } }] }
  end

  def pieces
    { "Deflate#<<, 100 bytes" => [@pieces.size, ->(zlib) { appended(zlib) }],
      "Deflate#deflate, 100 bytes" => [@pieces.size, ->(zlib) { deflated(zlib) }],
      "GzipWriter#write, 100 bytes" => [@pieces.size, ->(zlib) { written(zlib) }],
      "crc32, 20 bytes" => [CALLS * 4, ->(zlib) { (CALLS * 4).times { zlib.crc32("twenty bytes of text") } }],
      "adler32, 20 bytes" => [CALLS * 4, ->(zlib) { (CALLS * 4).times { zlib.adler32("twenty bytes of text") } }] }
  end

  def reader(zlib) = zlib::GzipReader.new(StringIO.new(@packed))

  def count
    number = 0
    yield ->(*) { number += 1 }
    number
  end

  # Compresses a text as one response and returns its size.
  def respond(zlib, text)
    file = StringIO.new(String.new)
    zlib::GzipWriter.wrap(file) do |writer|
      writer.write(text)
      yield writer if block_given?
    end
    text.bytesize
  end

  def reads(file) = count { |one| one.call while file.read(100) }

  def appended(zlib)
    stream = zlib::Deflate.new
    @pieces.each { |piece| stream << piece }
    Zlib.inflate(stream.finish).bytesize
  end

  def deflated(zlib)
    stream = zlib::Deflate.new
    Zlib.inflate(@pieces.each_with_object(String.new) { |piece, made| made << stream.deflate(piece) } << stream.finish).bytesize
  end

  def written(zlib)
    file = StringIO.new(String.new)
    zlib::GzipWriter.wrap(file) { |writer| @pieces.each { |piece| writer.write(piece) } }
    Zlib.gunzip(file.string).bytesize
  end
end

if $PROGRAM_NAME == __FILE__
  results = SmallCalls.new.run
  results.each { |name, figures| puts format("%-30s x%-6s %s us", name, figures[:times_zlib], figures[:us_each]) }
  Bench.keep(Bench.by_figure(results), zlib: Zlib.zlib_version)
end
