# frozen_string_literal: true

require "zip"
require_relative "helper"

# rubyzip writes and reads archives.
class ZipTest < Minitest::Test
  include Programs

  def archive
    Zip::OutputStream.write_buffer do |zip|
      zip.put_next_entry("text.txt")
      zip.write(TEXT)
      zip.put_next_entry("noise.bin")
      zip.write(Random.new(1).bytes(100_000))
    end.string
  end

  def test_an_archive_is_read_back
    entries = {}
    Zip::InputStream.open(StringIO.new(archive)) do |zip|
      while (entry = zip.get_next_entry)
        entries[entry.name] = zip.read
      end
    end
    assert_equal({ "text.txt" => TEXT, "noise.bin" => Random.new(1).bytes(100_000) }, entries)
    assert_operator archive.bytesize, :<, 102_000
  end

  def test_a_file_is_changed
    Dir.mktmpdir do |folder|
      path = File.join(folder, "archive.zip")
      File.binwrite(path, archive)
      Zip::File.open(path) { |zip| zip.get_output_stream("more.txt") { |stream| stream.write("more") } }
      Zip::File.open(path) do |zip|
        assert_equal [TEXT, "more"], [zip.read("text.txt"), zip.read("more.txt")]
        assert_equal Zlib.crc32(TEXT), zip.find_entry("text.txt").crc
      end
    end
  end

  def test_a_damaged_archive_is_refused
    damaged = archive
    damaged[40, 40] = "\xFF".b * 40
    assert_raises(Zlib::Error, Zip::Error) do
      Zip::InputStream.open(StringIO.new(damaged)) { |zip| zip.get_next_entry && zip.read }
    end
  end
end
