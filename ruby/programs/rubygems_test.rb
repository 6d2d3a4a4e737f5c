# frozen_string_literal: true

require "rubygems/package"
require "rubygems/util"
require_relative "helper"

# RubyGems packs and unpacks gems, its index and its requests.
class RubyGemsTest < Minitest::Test
  include Programs

  def build_gem(folder)
    File.write(File.join(folder, "text.txt"), TEXT)
    spec = Gem::Specification.new("sample", "1.2.3") do |sample|
      sample.summary = sample.description = "A sample"
      sample.authors = ["An author"]
      sample.license = "MIT"
      sample.homepage = "https://example.org"
      sample.files = ["text.txt"]
    end
    Dir.chdir(folder) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec) } }
    File.join(folder, "sample-1.2.3.gem")
  end

  def test_a_gem_is_built_and_unpacked
    Dir.mktmpdir do |folder|
      package = Gem::Package.new(build_gem(folder))
      assert package.verify
      assert_equal %w[sample text.txt], [package.spec.name, *package.contents]
      package.extract_files(File.join(folder, "out"))
      assert_equal TEXT, File.read(File.join(folder, "out", "text.txt"))
    end
  end

  def test_a_damaged_gem_is_refused
    Dir.mktmpdir do |folder|
      file = build_gem(folder)
      damaged = File.binread(file).tap { |bytes| bytes[1600, 40] = "\0" * 40 }
      File.binwrite(file, damaged)
      assert_raises(Gem::Package::Error, Zlib::Error) { Gem::Package.new(file).extract_files(File.join(folder, "out")) }
    end
  end

  def test_its_indexes_are_packed
    assert_equal TEXT, Gem::Util.gunzip(Gem::Util.gzip(TEXT))
    assert_equal TEXT, Gem::Util.inflate(Zlib.deflate(TEXT))
  end
end
