# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"

# Ruby's own tests of Zlib with Offlock::Zlib in its place, where a source tree of Ruby is at hand (RUBY_SOURCE=path).
class OriginalZlibTest < Minitest::Test
  SOURCE = ENV.fetch("RUBY_SOURCE", "")
  # Needs a switch of threads for each of its 10,000 wake-ups; under the lock each takes a time slice.
  LEFT_OUT = "test_thread_wakeup_interrupt"

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
    output, status = Open3.capture2e(RbConfig.ruby, *paths, "-r", "offlock", "-e", "#{PRELUDE}; load #{tests.dump}", "--",
                                     "--name=!/#{LEFT_OUT}/")
    assert status.success?, output
  end
end
