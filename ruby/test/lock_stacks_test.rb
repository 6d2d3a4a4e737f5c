# frozen_string_literal: true

require "test_helper"
require "support/waiting_thread"
require "tmpdir"

# The code that others waited for, in programs whose truth is known by construction. The timer needs a processor every
# two milliseconds, which other tests may use: so a program may be run again, and most of the time must be lost to the
# right line, not all of it.
class LockStacksTest < Minitest::Test
  include Texts
  include WaitingThread

  MS = 1_000_000
  ATTEMPTS = 5
  # What compute_for spends its time in. A tool of another test can make Ruby call its operators as methods.
  COMPUTES = /compute_for|clock_gettime|Float#</
  NUMBERS = Array.new(60_000) { |i| i * 7_919 % 1_000_003 }

  def test_a_method_that_computes_is_named
    assert_lost_to(COMPUTES, "# computes") { 5.times { compute_for(0.02) || sleep(0.001) } }
  end

  def test_a_function_in_c_is_named_at_the_line_that_called_it
    assert_lost_to(//, "# sorts") { 5.times { NUMBERS.sort_by { |number| number ^ 5 } && sleep(0.001) } } # sorts
  end

  def test_a_function_in_c_that_never_gives_the_lock_up_is_one_hold
    took = nil
    code = assert_lost_to(/\AInteger#\*\*\z/, "# one call") do
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      7**8_000_000 # one call
      took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
    end
    row = code[:lines].find { |line| line[:function] == "Integer#**" }
    assert_operator row[:longest_hold], :>, 0.9 * took
  end

  def test_blocks_iterators_and_evaluated_code_are_named
    assert_lost_to(COMPUTES, "# computes") do
      [1, 2, 3].each { |_| compute_for(0.01) }
      eval("sleep(0.001) || compute_for(0.03)", binding, "made.rb", 7) # rubocop:disable Style/EvalWithLocation
      Fiber.new { compute_for(0.01) }.resume
    end
  end

  def test_code_that_a_method_evaluates_has_the_file_that_it_was_given
    stacks = folded(<<~'RUBY')
      def evaluate = eval("compute_in_c\nsleep 0.001\n5_000_000.times { |n| n + 1 }", binding, "made.rb", 7)
      def instance = Object.new.instance_eval("proc { compute_in_c }", "block.rb", 40)
      def compute_in_c = NUMBERS.sort_by { |number| number ^ 5 }
      NUMBERS = Array.new(60_000) { |i| i * 7_919 % 1_000_003 }
      beside_waiter do
        10.times do
          eval("NUMBERS.sort_by { |number| number ^ 5 }\nsleep 0.001", binding, "top.rb", 0)
          evaluate
          instance_exec(&instance_eval("proc { NUMBERS.sort_by { |number| number ^ 5 } }", "block.rb", 40))
          sleep 0.001
        end
      end
    RUBY
    lines = stacks.lines.map { |line| line.split(";").last }
    assert lines.grep(/evaluate \(made\.rb:9\)/).any?, stacks[0, 3_000]
    assert lines.grep(/block\.rb:40/).any?, stacks[0, 3_000]
  end

  def test_the_end_of_a_hold_is_not_taken_for_the_whole
    assert_lost_to(COMPUTES, "# computes") { 20.times { compute_for(0.008) || sleep(0.001) } }
  end

  def test_without_stacks_there_are_none
    code = code_beside_waiter(stacks: nil) { compute_for(0.05) }
    assert_empty code[:lines]
    assert_equal 0, code[:known]
    [-1, Float::NAN].each do |wait|
      assert_raises(ArgumentError) { Offlock::Lock::Trace.new(stacks: wait) }
    end
  end

  def test_code_that_is_collected_never_lends_its_name
    stacks = folded(<<~'RUBY')
      beside_waiter do
        60.times do |number|
          source = "\n" * (number % 7) + "def f#{number}\n compute_for 0.003\nend\nf#{number}"
          Module.new.module_eval(source.sub("def f", "def self.f").sub(/^f/, "self.f"), "<made #{number}>", 1)
          GC.start if number % 5 == 0
          GC.compact if number % 20 == 0
          sleep 0.001
        end
      end
    RUBY
    made = stacks.scan(/f(\d+) \(<made (\d+)>:(\d+)\)/)
    assert_operator made.size, :>, 20, stacks[0, 2_000]
    made.each do |function, file, line|
      assert_equal function, file
      assert_equal (function.to_i % 7) + 2, line.to_i
    end
  end

  PROGRAMS = {
    "threads that die" => <<~RUBY,
      beside_waiter do
        50.times { 3.times.map { Thread.new { compute_for 0.001 } }.each(&:join) }
        20.times { Thread.new { compute_for 1 }.tap { sleep 0.002 }.kill.join }
      end
    RUBY
    "deep recursion" => <<~RUBY,
      def deep(depth) = depth.zero? ? 10.times { compute_for(0.003) || sleep(0.0005) } : deep(depth - 1)
      beside_waiter { deep(5_000) }
    RUBY
    "forks" => <<~RUBY,
      beside_waiter do
        10.times do
          child = fork do
            stats = Offlock::Lock.measure { Thread.new { compute_for 0.02 }.join }
            exit!(stats.to_h[:threads].empty? ? 1 : 0)
          end
          compute_for 0.003
          Process.wait(child)
          raise "the child failed" unless $?.success?
        end
      end
    RUBY
    "forks beside many short holds and sleeps" => <<~RUBY,
      done = false
      sleepers = 5.times.map { Thread.new { compute_for(0.0005) || sleep(0.0002) until done } }
      Thread.new { beside_waiter { 100.times { Process.wait(fork { exit!(0) }) } } }.join
      done = true
      sleepers.each(&:join)
    RUBY
    # Of one thread each: Ruby 3.4 hangs by itself in one of eight runs of this program with three threads in each.
    "ractors" => <<~RUBY,
      Warning[:experimental] = false
      ractors = 2.times.map do
        Ractor.new { 40.times { t = Time.now + 0.003; nil while Time.now < t } }
      end
      beside_waiter { 50.times { compute_for(0.002) || sleep(0.0005) } }
      ractors.each { |ractor| ractor.respond_to?(:take) ? ractor.take : ractor.value }
    RUBY
    "garbage collection at every object" => <<~RUBY,
      beside_waiter do
        GC.stress = true
        10.times { Array.new(20) { |i| i.to_s } && sleep(0.0005) }
        GC.stress = false
      end
    RUBY
    "signals and traps" => <<~RUBY,
      trap("USR1") { compute_for 0.002 }
      beside_waiter { 30.times { Process.kill("USR1", $$); compute_for 0.002; sleep 0.0005 } }
    RUBY
    "fibers" => <<~RUBY,
      beside_waiter { 30.times { Fiber.new { compute_for 0.002; Fiber.yield; compute_for 0.002 }.then { |f| f.resume; sleep 0.0005; f.resume } } }
    RUBY
  }.freeze

  PROGRAMS.each do |name, program|
    define_method("test_#{name.tr(" ", "_")}") do
      stacks = folded(program, "RUBY_MN_THREADS" => (name.hash.odd? ? "1" : "0"))
      assert_empty stacks.lines.grep(/(?:\A|;)(?:\?|function \d+) \(/), "all code has a name"
      assert_operator stacks.lines.size, :>, 0
    end
  end

  private

  # What is said of the block, while a thread wants the lock every millisecond.
  def code_beside_waiter(stacks: 0.0, &body)
    summary = Offlock::Lock.measure(stacks: stacks) { beside_waiter(&body) }
    assert_equal 0, summary.to_h[:violations]
    summary.to_h[:code]
  end

  # The collapsed stacks of a program.
  def folded(program, environment = {})
    before = environment.to_h { |name, _| [name, ENV.fetch(name, nil)] }
    ENV.update(environment)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.folded")
      program = "include WaitingThread\nOfflock::Lock.trace(#{path.dump}, stacks: 0.0) do\n#{program}\nend"
      output, status = run_ruby(program, libraries: %w[offlock support/waiting_thread])
      assert_predicate status, :success?, output
      File.read(path)
    end
  ensure
    ENV.update(before)
  end

  # Asserts that others lost most of what is known to lines with a text, in functions.
  #
  # @return [Hash] what is said of the block
  def assert_lost_to(functions, text, &body)
    code = nil
    ATTEMPTS.times do
      code = code_beside_waiter(&body)
      is_known = code[:known] > [20 * MS, 20 * code[:unknown]].max
      return code if is_known && share(code, functions, text) >= 0.75
    end
    flunk code.inspect
  end

  def line(row) = File.file?(row[:file]) ? File.readlines(row[:file])[row[:line] - 1] : ""

  # The part of the known time that was lost to lines with a text, in functions.
  def share(code, functions, text)
    rows = code[:lines].select { |row| row[:function].match?(functions) && line(row).include?(text) }
    rows.sum { |row| row[:lost] }.fdiv([code[:known], 1].max)
  end
end
