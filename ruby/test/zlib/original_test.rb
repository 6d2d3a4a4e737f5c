# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"

# Runs all of Ruby's own tests of Zlib with Offlock::Zlib in its place, if they are available: set-up puts them into the tools
# folder; RUBY_SOURCE is the path of another source tree of Ruby.
class OriginalZlibTest < Minitest::Test
  SOURCE = ENV.fetch("RUBY_SOURCE", "")
  PRELUDE = <<~RUBY
    require "test/unit"
    require "core_assertions"
    require "envutil"
    Test::Unit::TestCase.include Test::Unit::CoreAssertions
    $VERBOSE = nil
    Zlib = Offlock::Zlib
  RUBY

  def test_the_originals_tests_pass
    tests = File.join(SOURCE, "test/zlib/test_zlib.rb")
    skip "no source of Ruby: set RUBY_SOURCE" unless File.exist?(tests)

    paths = [*$LOAD_PATH, File.join(SOURCE, "tool/lib")].flat_map { |path| ["-I", path] }
    # The tests start the Ruby that this variable names.
    environment = { "RUBY" => RbConfig.ruby }
    program = "#{PRELUDE}; load #{tests.dump}"
    output, status = Open3.capture2e(environment, RbConfig.ruby, *paths, "-r", "offlock", "-e", program)
    assert status.success?, output
    refute_match(/\b0 tests\b/, output)
  end
end
