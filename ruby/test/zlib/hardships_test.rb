# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/zlib_cases"

# Calls every public method of Offlock::Zlib, as the signatures list them, under hard conditions: a collector that runs at each
# allocation and moves objects, Ractors, callbacks that use the object they are called by, threads that change the inputs, and
# interrupts. Each condition has its own process, so that a crash is reported. SEED repeats a run.
class ZlibHardshipsTest < Minitest::Test
  include Texts

  PROGRAM = File.expand_path("../support/zlib_hardships.rb", __dir__)

  def test_every_method_has_a_case
    assert_equal [], ZlibCases.signed - ZlibCases.covered
    assert_operator ZlibCases.signed.size, :>, 90
  end

  # Runs one condition. The message of a failure has the seed.
  def assert_survives(hardship)
    seed = ENV.fetch("SEED") { Random.new_seed % 100_000 }
    output, status = run_ruby("ARGV.replace(%w[#{hardship} #{seed}]); $VERBOSE = nil; load #{PROGRAM.dump}", timeout: 120)
    output = output.lines.grep_v(/warning: /).join
    assert_equal "done\n", output.scrub[-3000..] || output.scrub, "SEED=#{seed} #{hardship}: #{status}"
    assert_predicate status, :success?, "SEED=#{seed} #{hardship}"
  end

  def test_collection = assert_survives("stress")
  def test_compaction = assert_survives("compaction")
  def test_ractors = assert_survives("ractor")
  def test_callbacks = assert_survives("callbacks")
  def test_changing_inputs = assert_survives("changes")
  def test_interrupts = assert_survives("interrupts")
end
