# frozen_string_literal: true

require_relative "test_helper"

# With OFFLOCK_INTERNALS=0 the extension uses nothing of CRuby but its public interface, and does the same.
class InternalsTest < Minitest::Test
  include Texts

  FILES = %w[strings text tiktoken in_place ractor msgpack/message_pack msgpack/vectors zlib/details zlib/objects].freeze
  # That pieces share the bytes of their text is what is switched off. And Ruby 3.4 spoils Strings that it moves to a Ractor
  # if their bytes are their own.
  EXCEPT = "/share_the_bytes|StringsTest#test_ractors/"

  def without_internals(program, arguments = [])
    environment = { "OFFLOCK_INTERNALS" => "0" }
    options = $LOAD_PATH.map { |path| "-I#{path}" }
    IO.popen([environment, RbConfig.ruby, *options, "-e", program, *arguments], err: %i[child out], &:read)
  end

  def test_the_suite_passes_without_internals
    program = FILES.map { |file| "require #{File.join(__dir__, "#{file}_test").inspect}\n" }.join
    output = without_internals(program, ["--", "--exclude", EXCEPT])
    assert_match(/\A\d+ runs, \d+ assertions, 0 failures, 0 errors/, output.lines.grep(/ runs, /).last.to_s, output)
  end

  SHARED = <<~RUBY
    require "offlock"
    require "objspace"
    p ObjectSpace.memsize_of(Offlock::Strings.lines(("a" * 999 + "\\n") * 2)[0]) > 1000
  RUBY

  def test_internals_are_switched_off
    assert_equal "true\n", without_internals(SHARED)
    assert_equal "false\n", run_ruby(SHARED).first
  end
end
