# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "../support/zlib_failure"
require_relative "../test_helper"

# With any arguments Offlock::Zlib and the original return the same value, or raise the same exception with the same message.
class ZlibArgumentsTest < Minitest::Test
  include ZlibFailure

  class Word
    def to_str = +"word"
  end

  ODD = [
    nil, true, :symbol, 0, 1, -1, 9, 10, 1.5, 2**31, -(2**31), 2**32, -(2**63), 2**64, [], Object.new, Word.new, "", "é", "abc", Class
  ].freeze
  PACKED = Zlib.deflate("plain " * 20)

  ONE_SHOT = {
    deflate: ->(zlib, odd) { zlib.deflate(odd) },
    deflate_level: ->(zlib, odd) { zlib.inflate(zlib.deflate("text", odd)) },
    inflate: ->(zlib, odd) { zlib.inflate(odd) },
    gunzip: ->(zlib, odd) { zlib.gunzip(odd) },
    gzip: ->(zlib, odd) { zlib.gunzip(zlib.gzip(odd)) },
    gzip_level: ->(zlib, odd) { zlib.gunzip(zlib.gzip("text", level: odd)) },
    gzip_strategy: ->(zlib, odd) { zlib.gunzip(zlib.gzip("text", strategy: odd)) },
    crc32: ->(zlib, odd) { zlib.crc32(odd) },
    crc32_of_more: ->(zlib, odd) { zlib.crc32("text", odd) },
    adler32_of_more: ->(zlib, odd) { zlib.adler32("text", odd) },
    crc32_combine: ->(zlib, odd) { zlib.crc32_combine(odd, 2, 3) },
    adler32_combine: ->(zlib, odd) { zlib.adler32_combine(1, odd, 3) },
    adler32_combine_length: ->(zlib, odd) { zlib.adler32_combine(1, 2, odd) },
    zlib_version: ->(zlib, _) { [zlib.zlib_version.encoding, zlib.zlib_version.frozen?] },
    included: ->(zlib, odd) { Class.new { include zlib }.new.instance_eval { crc32(odd) } }
  }.freeze

  # Without any input, `params` crashes the original.
  STREAMS = {
    deflate_new: ->(zlib, odd) { zlib::Deflate.new(odd).class },
    deflate_memory: ->(zlib, odd) { zlib::Deflate.new(nil, nil, odd).class },
    deflate: ->(zlib, odd) { zlib::Deflate.new.deflate(odd) },
    deflate_flush: ->(zlib, odd) { zlib::Deflate.new.deflate("text", odd) },
    deflate_add: ->(zlib, odd) { (zlib::Deflate.new << odd).finish },
    flush: ->(zlib, odd) { (zlib::Deflate.new << "text").flush(odd) },
    params: ->(zlib, odd) { (zlib::Deflate.new << "text").params(odd, 0) },
    params_strategy: ->(zlib, odd) { (zlib::Deflate.new << "text").params(1, odd) },
    deflate_dictionary: ->(zlib, odd) { zlib::Deflate.new.set_dictionary(odd).class },
    inflate_new: ->(zlib, odd) { zlib::Inflate.new(odd).inflate(PACKED) },
    inflate: ->(zlib, odd) { zlib::Inflate.new.inflate(odd) },
    inflate_add: ->(zlib, odd) { (zlib::Inflate.new << odd).finish },
    inflate_buffer: ->(zlib, odd) { zlib::Inflate.new.inflate(PACKED, buffer: odd.dup).then { |made| [made, made.encoding] } },
    add_dictionary: ->(zlib, odd) { zlib::Inflate.new.add_dictionary(odd).class },
    sync: ->(zlib, odd) { zlib::Inflate.new.sync(odd) },
    # The original allocates as much memory at once.
    avail_out: ->(zlib, odd) { zlib::Inflate.new.tap { |stream| stream.avail_out = odd.is_a?(Integer) ? 1 : odd }.avail_out },
    class_method: ->(zlib, _) { [].tap { |made| zlib::Inflate.inflate(PACKED) { |chunk| made << chunk } } },
    not_initialized: ->(zlib, odd) { zlib::Inflate.allocate.inflate(odd) },
    reader_not_initialized: ->(zlib, _) { zlib::GzipReader.allocate.read }
  }.freeze

  # Removes the module from the name of a class.
  def outcome(zlib, call, odd)
    value = call.call(zlib, odd)
    value.is_a?(Module) ? value.name.delete_prefix("Offlock::") : value
  rescue StandardError => e
    failure(e)
  end

  def check(calls)
    calls.each do |name, call|
      ODD.each do |odd|
        expected, found = [Zlib, Offlock::Zlib].map { |zlib| outcome(zlib, call, odd) }
        expected.nil? ? assert_nil(found, "#{name} of #{odd.inspect}") : assert_equal(expected, found, "#{name} of #{odd.inspect}")
      end
    end
  end

  # An invalid level crashes older versions of the original.
  def test_functions = check(RUBY_VERSION < "3.4" ? ONE_SHOT.except(:gzip_level, :gzip_strategy) : ONE_SHOT)
  def test_streams = check(STREAMS)

  # The original does not return from this call.
  def test_a_negative_length_of_a_checksum_is_refused
    assert_raises(RangeError) { Offlock::Zlib.crc32_combine(1, 2, -1) }
  end

  # That of a checksum of the header, too, which the original takes for that of a file in several parts.
  def test_headers_with_unknown_flags_are_refused
    [0x02, 0x03, 0x20, 0x22, 0x40, 0x41, 0x42, 0x60].each do |flags|
      file = Zlib.gzip("text").tap { |bytes| bytes.setbyte(3, flags) }
      [->(zlib) { zlib.gunzip(file) }, ->(zlib) { zlib::GzipReader.new(StringIO.new(file)) }].each do |read|
        expected, found = [Zlib, Offlock::Zlib].map { |zlib| assert_raises(Zlib::GzipFile::Error) { read.call(zlib) }.message }
        assert_equal expected, found
      end
    end
  end

  def test_a_file_in_a_string_may_end_anywhere
    file = Zlib.gzip("text")
    (0...file.bytesize).each do |length|
      read = ->(zlib, cut) { zlib.gunzip(cut) }
      expected, found = [Zlib, Offlock::Zlib].map { |zlib| outcome(zlib, read, file.byteslice(0, length)) }
      assert_equal expected, found, "after #{length} bytes"
    end
  end
end
