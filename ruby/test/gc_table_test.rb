# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/public_methods"
require_relative "support/scenarios"

# Runs every public method while garbage is collected, and objects are moved, all the time.
class GCTableTest < Minitest::Test
  include Texts

  SCENARIOS = File.expand_path("support/scenarios", __dir__)

  # Methods that the scenarios call under other names.
  ANOTHER_NAME = %w[].freeze

  # Returns the methods of offlock that scenarios call, such as "Offlock::Strings.lines".
  def calls_of(scenarios)
    called = {}
    trace = TracePoint.new(:call, :c_call) do |call|
      receiver = call.self
      owner = receiver.is_a?(Module) ? "#{receiver}." : "#{receiver.class}#"
      called["#{owner}#{call.callee_id}"] = true if owner.start_with?("Offlock")
    end
    trace.enable { scenarios.each_value { |scenario| scenario.call(3) } }
    called
  end

  def test_no_method_is_forgotten
    methods = %w[jsonl message_pack pipeline strings tiktoken tokenizer tokenizers zstd].flat_map { |file| PublicMethods.in(file) }
    assert_operator methods.size, :>, 190
    assert_empty methods - calls_of(Scenarios::TABLE).keys
  end

  # Each scenario runs in a process of its own: a collection takes as long as there are objects, and this process has many.
  Scenarios::TABLE.each_key do |name|
    define_method(:"test_stress_#{name.tr(" ", "_")}") do
      output, status = run_ruby(<<~RUBY)
        require #{SCENARIOS.inspect}
        scenario = Scenarios::TABLE.fetch(#{name.inspect})
        expected = scenario.call(2)
        GC.auto_compact = true if GC.respond_to?(:auto_compact=)
        before = GC.count
        GC.stress = true
        outcome = scenario.call(2)
        GC.stress = false
        print outcome == expected, " ", GC.count - before
      RUBY
      assert_equal true, status.success?, output
      assert_operator output[/\Atrue (\d+)\z/, 1].to_i, :>, 15, output
    end
  end

  def test_an_unpacker_that_was_moved
    skip "no compaction here" unless GC.respond_to?(:verify_compaction_references)
    made = Scenarios.factory
    bytes = made.dump([1..2, [3..4]])
    unpackers = Array.new(200) { made.unpacker.feed(bytes) }
    GC.verify_compaction_references(expand_heap: true, toward: :empty)
    assert_equal [[1..2, [3..4]]], unpackers.map(&:read).uniq
  end

  # Causes a collection for every 256 KB of memory. Another thread moves objects.
  PRESSURE = { "RUBY_GC_MALLOC_LIMIT" => "262144", "RUBY_GC_MALLOC_LIMIT_MAX" => "262144" }.freeze

  def test_many_items_under_pressure
    before = ENV.to_h
    ENV.update(PRESSURE)
    # Some seconds on a quiet machine.
    output, status = run_ruby(<<~RUBY, timeout: 300)
      require #{SCENARIOS.inspect}
      done = false
      mover = Thread.new { [GC.respond_to?(:compact) && GC.compact, sleep(0.002)] until done }
      outcome = lambda do |scenario, count|
        scenario.call(count)
      rescue Errno::EFAULT => e
        # Ruby protects pages while it moves objects. A system call of its own, which it names, cannot read a path there.
        e.message.include?(" @ ") ? retry : raise
      end
      wrong = Scenarios::TABLE.filter_map do |name, scenario|
        count = name == "many messages" ? 5_000 : 1_000
        name unless outcome.call(scenario, count) == outcome.call(scenario, count)
      end
      done = true
      mover.join
      print wrong, " ", GC.count
    RUBY
    assert_equal true, status.success?, output
    assert_operator output[/\A\[\] (\d+)\z/, 1].to_i, :>, 150, output
  ensure
    ENV.replace(before)
  end
end
