# frozen_string_literal: true

require "json"
require "tmpdir"

require_relative "support/keeper"
require_relative "test_helper"

# Flight recorders: the last seconds, written on request, for a reason, or at the end of a traced program.
class FlightRecorderTest < Minitest::Test
  L = Offlock::Lock

  # The files in which the keeper's hold is seen: in Ruby 3.3, Fiddle runs Ruby code of its own after each call.
  KEEPS = %w[keeper.rb fiddle.rb].freeze

  include Keeper
  include Texts

  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_a_dump_names_the_code_that_held_the_lock
    recorder = L::FlightRecorder.new(seconds: 60)
    [1, 2].each do |holds|
      keep(0.05)
      stats = recorder.dump(path("#{holds}.offlock"))
      summary = summary_of(path("#{holds}.offlock"))
      assert_equal [stats.events, 0, nil], summary.values_at("events", "lost", "damage")
      assert_equal stats.bytes, File.size(path("#{holds}.offlock"))
      assert_includes KEEPS, File.basename(summary["code"]["lines"][0]["file"])
      assert_equal holds, summary["threads"].count { |thread| thread["name"] == "keeper" }
    end
    assert_includes 1..(1 << 20), recorder.memory
    assert_predicate recorder, :running?
    assert_instance_of L::Stats, recorder.stop
    refute_predicate recorder, :running?
    assert_nil recorder.dump(path("late.offlock"))
  ensure
    recorder&.stop
  end

  def test_a_watch_is_told_of_a_long_hold_and_of_a_long_wait
    recorder = L::FlightRecorder.new
    holds, waits = [], []
    recorder.on_hold(0.1) { |alarm| holds << alarm }
    recorder.on_wait(0.1) { |alarm| waits << alarm }
    keep(1.0)
    eventually { !holds.empty? && !waits.empty? }
    alarm = holds.find { |found| found.holder == "keeper" }
    assert_equal ["main", false], [alarm.waiting, alarm.over?]
    assert_operator alarm.nanoseconds, :>=, 100_000_000
    assert_operator alarm.nanoseconds, :<, 1_000_000_000
    assert_match(/\A"keeper" has held the lock for \d+ ms while "main" waited/, alarm.to_s)
    assert(waits.any? { |wait| wait.waiting == "main" && wait.holder == "keeper" })
    assert_empty (holds + waits).map(&:waiting) & ["offlock watch"]
    assert_empty (holds + waits).flat_map { |told| told.stack.map(&:first) }.grep(/\Afunction \d+\z/)
  ensure
    recorder&.stop
  end

  def test_a_block_that_raises_is_called_for_the_next_wait_too
    recorder, calls = L::FlightRecorder.new, 0
    recorder.on_wait(0.05) { (calls += 1) && raise("a fault in the block") }
    _, errors = capture_io do
      2.times { |round| keep(0.2) && eventually { calls > round } }
      recorder.stop
    end
    assert_includes errors, "offlock: the block of on_wait or on_hold raised"
    assert_includes errors, "a fault in the block"
  ensure
    recorder&.stop
  end

  def test_a_watching_thread_ends_when_it_is_killed_and_when_the_recorder_stops
    recorder = L::FlightRecorder.new
    2.times { recorder.on_hold(10) { flunk } }
    killed, other = Thread.list.select { |thread| thread.name == "offlock watch" }
    killed.kill
    assert killed.join(10)
    assert_predicate other, :alive?
    recorder.stop
    assert other.join(10)
  ensure
    recorder&.stop
  end

  def test_a_stuck_lock_is_written_while_it_is_stuck
    recorder = L::FlightRecorder.new(path: path("stuck.offlock"), dump_on_hold: 0.1)
    keep(2.0)
    assert_operator Time.now - File.mtime(path("stuck.offlock")), :>, 0.3
    recorder.stop
    assert_equal ["stuck.offlock"], Dir.children(@folder), "one in a minute"
    assert_nil summary_of(path("stuck.offlock"))["damage"]
  ensure
    recorder&.stop
  end

  def test_memory_is_bounded
    recorder = L::FlightRecorder.new(seconds: 3600, memory: 1 << 20)
    20.times do
      8_000.times { sleep(0) }
      assert_operator recorder.memory, :<=, 1 << 20
    end
    stats = recorder.dump(path("last.offlock"))
    assert_operator stats.events, :<, 20 * 8_000 * 3, "some were dropped"
    assert_operator stats.bytes, :<, 2 << 20
    assert_nil summary_of(path("last.offlock"))["damage"]
  ensure
    recorder&.stop
  end

  def test_what_makes_no_sense_is_refused
    [{ seconds: -1 }, { stacks: Float::NAN }, { dump_on_wait: -0.1 }, { interval: Float::INFINITY }].each do |options|
      error = assert_raises(ArgumentError) { L::FlightRecorder.new(path: path("x.offlock"), **options) }
      assert_includes error.message, "#{options.keys[0]}: "
    end
    assert_includes assert_raises(IOError) { L::FlightRecorder.new(memory: 1) }.message, "1048576"
    assert_includes assert_raises(IOError) { L::FlightRecorder.new(dump_on_hold: 1) }.message, "no path"
    recorder = L::FlightRecorder.new
    assert_raises(Errno::ENOENT) { recorder.dump(path("no folder/x.offlock")) }
    assert_raises(ArgumentError) { recorder.on_hold(-1) { nil } }
    assert_raises(ArgumentError) { recorder.on_hold(1) }
    recorder.stop
    assert_raises(IOError) { recorder.on_hold(1) { nil } }
    assert_empty Dir.children(@folder)
  ensure
    recorder&.stop
  end

  def test_a_forked_child_has_a_recorder_of_its_own
    output, = run_ruby(<<~RUBY, timeout: 60, libraries: %w[offlock support/keeper])
      include Keeper
      Dir.chdir(#{@folder.dump})
      recorder = Offlock::Lock::FlightRecorder.new(path: "app.offlock", dump_on_hold: 0.1)
      alarms = []
      recorder.on_hold(0.1) { |alarm| alarms << alarm }
      pid = fork do
        keep(0.3)
        500.times { alarms.empty? || !File.exist?("app.\#{Process.pid}.offlock") ? sleep(0.02) : break }
        recorder.dump("child.offlock")
        GC.start
        recorder.stop
        exit!(alarms.first.holder == "keeper" ? 0 : 1)
      end
      Process.wait(pid)
      abort "the child failed" unless $?.success?
      recorder.dump("parent.offlock")
      puts pid
    RUBY
    assert_equal ["app.#{output.lines.last.strip}.offlock", "child.offlock", "parent.offlock"], Dir.children(@folder).sort
    Dir.children(@folder).each do |name|
      has_keeper = summary_of(path(name))["threads"].any? { |thread| thread["name"] == "keeper" }
      assert_equal name != "parent.offlock", has_keeper, name
    end
  end

  ENDS = { "" => 0, "raise" => 1, "exit!(3)" => 3, "exit(3)" => 3 }.freeze

  ENDS.each do |ending, status|
    define_method(:"test_the_command_keeps_the_last_seconds_until_the_end_#{ending}") do
      errors, ended = trace("sleep(3); keep(0.05); #{ending}", "--keep", "1s")
      assert_equal status, ended.exitstatus, errors
      summary = summary_of(path("app.offlock"))
      assert_nil summary["damage"]
      assert_operator summary["length"], :<, 2.5e9
      assert_includes KEEPS, File.basename(summary["code"]["lines"][0]["file"])
    end
  end

  def test_the_command_writes_them_at_a_signal_and_for_a_reason
    program = 'keep(0.3); Process.kill("USR1", Process.pid); keep(0.01)'
    errors, ended = trace(program, "--keep", "30s", "--signal", "USR1", "--dump-on-hold", "150ms")
    assert_predicate ended, :success?, errors
    assert_match(/"keeper" (has )?held the lock for \d+ ms/, errors)
    assert_includes errors, "the last seconds are in #{path("app-2.offlock")}"
    %w[app.offlock app-2.offlock app-3.offlock].each { |name| assert_nil summary_of(path(name))["damage"] }
  end

  def test_a_program_keeps_its_exit_status_if_its_trace_cannot_be_written
    full = 'trap("XFSZ", "IGNORE"); Process.setrlimit(:FSIZE, 100); keep(0.05); exit 5'
    errors, ended = trace(full)
    assert_equal 5, ended.exitstatus, errors
    assert_match(/^offlock: process \d+: the trace could not be completed: File too large$/, errors)
    errors, ended = trace(full, "--keep", "30s")
    assert_equal 5, ended.exitstatus, errors
  end

  private

  # Runs a program under `offlock trace`.
  def trace(program, *options)
    libraries = $LOAD_PATH.map { |folder| "-I#{folder}" }
    program = [RbConfig.ruby, *libraries, "-rsupport/keeper", "-e", "include Keeper; #{program}"]
    command("trace", "-o", path("app.offlock"), *options, "--", *program)
  end

  def command(*arguments)
    libraries = $LOAD_PATH.map { |folder| "-I#{folder}" }
    command = [RbConfig.ruby, *libraries, File.expand_path("../exe/offlock", __dir__), *arguments]
    output = IO.popen(command, err: %i[child out], &:read)
    [output, $CHILD_STATUS]
  end

  def path(name) = File.join(@folder, name)

  def summary_of(path)
    JSON.parse(command("summary", "--json", path).first)
  end

  def eventually
    500.times { yield ? return : sleep(0.02) }
    flunk "nothing came"
  end
end
