# frozen_string_literal: true

require_relative "test_helper"

# A fork at a random moment, for every public method of MessagePack, Strings, Tiktoken and Zlib: GCTableTest and ZlibHardshipsTest
# see to it that no method lacks a scenario or case. (Children of traced programs are LockForkTest's.) SEED repeats a run.
class ForksTest < Minitest::Test
  include Texts

  PROGRAM = File.expand_path("support/forks.rb", __dir__)
  # How long to fork children for; the environment may ask for more.
  SECONDS = Float(ENV.fetch("OFFLOCK_SOAK_SECONDS", "15"))

  def test_children_forked_at_random_moments_come_to_the_right_results
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
