# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# Tests children of traced programs.
class LockForkTest < Minitest::Test
  # How long to fork children; the environment may set a longer time.
  SECONDS = Float(ENV.fetch("OFFLOCK_SOAK_SECONDS", "10"))

  def options = $LOAD_PATH.map { |path| "-I#{path}" }

  def traced(folder, *program, environment: {})
    command = [RbConfig.ruby, *options, File.expand_path("../exe/offlock", __dir__), "trace", "-o", "#{folder}/app.offlock"]
    Open3.capture3(environment, *command, "--", RbConfig.ruby, *program)
  end

  # Returns the states of the traces with these names, as "name status warning". One process reads all of them.
  def state_of(folder, names)
    program = <<~'RUBY'
      folder = ARGV.shift
      ARGV.each do |name|
        $stderr.puts "#{name} #{Offlock.run_cli(["offlock", "export", "-f", "json", "#{folder}/#{name}", "-o", "/dev/null"])}"
      end
    RUBY
    _, errors, status = Open3.capture3(RbConfig.ruby, *options, "-rofflock", "-e", program, folder, *names)
    assert_predicate status, :success?, errors
    errors
  end

  def test_children_of_a_traced_program_with_threads_end_and_leave_a_readable_trace
    seed = Random.new_seed % 1_000_000
    puts "children forked for #{SECONDS} s with seed #{seed}"
    Dir.mktmpdir do |folder|
      output, errors, status = traced(folder, File.expand_path("support/prefork.rb", __dir__), SECONDS.to_s, seed.to_s)
      assert_predicate status, :success?, errors
      children = output.lines.map(&:split)
      children = without_those_stuck_in_ruby(children, folder)
      refute_empty children
      assert_empty(children.reject { |child| child[2..] == ["ended"] }, "seed #{seed}")
      names = children.map { |pid, _| "app.#{pid}.offlock" }
      assert_empty names - Dir.children(folder), "seed #{seed}"
      states = state_of(folder, names)
      assert_empty names.reject { |name| states.include?("#{name} 0\n") }, "seed #{seed}"
      open = states.scan(%r{/app\.(\d+)\.offlock: (.*)})
      assert(open.all? { |_, damage| damage.include?("complete up to its last flush") || damage.include?("cut off") }, states)
      killed = children.filter_map { |pid, way| pid if way == "signal" }
      assert_empty open.map(&:first) - killed, "only what a signal ends has no end"
    end
  end

  # Ruby 3.4 itself may hang in a fork, traced or not: the child takes a lock of each of its parent's threads
  # (threadptr_interrupt_exec_cleanup), which those threads hold for a moment without Ruby's own lock. Such a child
  # never reaches the code that starts traces.
  def without_those_stuck_in_ruby(children, folder)
    stuck, others = children.partition { |pid, *, last| last == "hung" && !File.exist?("#{folder}/app.#{pid}.offlock") }
    puts "stuck in Ruby's own fork: #{stuck}" unless stuck.empty?
    assert_operator stuck.size, :<=, 1 + (children.size / 100)
    others
  end

  def test_a_child_that_cannot_be_traced_runs_all_the_same
    Dir.mktmpdir do |folder|
      program = "print 1; $stdout.flush; " \
                "ENV['OFFLOCK_TRACE'] = '/missing/a.offlock'; Process.wait(fork { print 2 }); print $?.exitstatus"
      output, errors, status = traced(folder, "-e", program)
      assert_equal ["120", true], [output, status.success?], errors
      assert_match(/process \d+ is not traced: No such file/, errors)
    end
  end

  def test_the_summary_is_that_of_the_busy_child
    program = <<~RUBY
      work = proc { finish = Process.clock_gettime(1) + 0.5; nil while Process.clock_gettime(1) < finish }
      Process.wait(fork { 2.times.map { Thread.new(&work) }.each(&:join) })
    RUBY
    Dir.mktmpdir do |folder|
      _, errors, = traced(folder, "-e", program)
      summary, others = errors.split("Other processes")
      assert_match(/process \d+ \(child of \d+\), which lost most of 2 processes/, summary)
      assert_includes summary.split.join(" "), "slows this program down"
      assert_match(/process \d+ \(parent of 1\)/, others)
    end
  end

  def test_a_signal_starts_and_stops_traces
    Dir.mktmpdir do |folder|
      program = "4.times { Process.kill('URG', $$); sleep 0.05 }"
      _, errors, status = traced(folder, "-e", program, environment: { "OFFLOCK_SIGNAL" => "URG" })
      assert_predicate status, :success?, errors
      traces = Dir.children(folder).sort
      assert_equal "app.offlock", traces[1], errors
      assert_match(/\Aapp\.\d+\.offlock\z/, traces[0])
      refute_includes errors, "not stopped"
    end
  end

  def test_a_daemon_has_a_trace_of_its_own
    Dir.mktmpdir do |folder|
      program = "reader, writer = IO.pipe; " \
                "fork { Process.daemon(false, true); writer.puts Process.pid }; writer.close; print reader.read"
      output, errors, status = traced(folder, "-e", program)
      assert_predicate status, :success?, errors
      child = "#{folder}/app.#{output.to_i}.offlock"
      3000.times { File.exist?(child) ? break : sleep(0.01) }
      assert_path_exists child
      assert_equal 3, Dir.children(folder).size
    end
  end

  def test_another_ruby_is_left_alone
    Dir.mktmpdir do |folder|
      output, errors, status = traced(folder, "-e", "print defined?(Offlock).inspect, $LOAD_PATH.grep(/offlock/).size",
                                      environment: { "OFFLOCK_RUBY" => "ruby 2.7.0 x86_64-linux" })
      assert_equal ["nil", true], [output[0, 3], status.success?], errors
      this = "ruby #{RbConfig::CONFIG["ruby_version"]}"
      assert_includes errors, "is not traced: this offlock is made for ruby 2.7.0 x86_64-linux, and this is #{this}"
      assert_empty Dir.children(folder)
    end
  end
end
