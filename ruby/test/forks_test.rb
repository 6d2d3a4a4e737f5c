# frozen_string_literal: true

require_relative "test_helper"

# Forks at random moments of every public method of MessagePack, Strings, Tiktoken, Zlib and Zstd. GCTableTest and ZlibHardshipsTest
# check that every method has a scenario or case, LockForkTest tests children of traced programs. SEED repeats a run.
class ForksTest < Minitest::Test
  include Texts

  PROGRAM = File.expand_path("support/forks.rb", __dir__)
  # How long to fork children; the environment may set a longer time.
  SECONDS = Float(ENV.fetch("OFFLOCK_SOAK_SECONDS", "10"))

  def test_children_forked_at_random_moments_return_the_right_results
    seed = ENV.fetch("SEED") { Random.new_seed % 100_000 }
    puts "children forked for #{SECONDS} s with seed #{seed}"
    output, status = run_ruby("ARGV.replace(%w[#{SECONDS} #{seed}]); $VERBOSE = nil; load #{PROGRAM.dump}", timeout: SECONDS + 90)
    output = output.lines.grep_v(/warning: /).join.scrub
    children, stuck = output.match(/\A(\d+) children, (\d+) stuck/)&.captures&.map(&:to_i)
    assert children, "SEED=#{seed}: #{status}\n#{output[-3000..] || output}"
    assert_predicate status, :success?, "SEED=#{seed}"
    assert_operator children, :>, 10
    assert_operator stuck, :<=, 1 + (children / 100)
  end
end
