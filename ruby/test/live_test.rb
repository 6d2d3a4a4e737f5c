# frozen_string_literal: true

require "json"
require "tmpdir"

require_relative "test_helper"

# Live traces: `offlock record` takes them from a process that runs, `offlock top` shows them.
class LiveTest < Minitest::Test
  COMMAND = [RbConfig.ruby, *$LOAD_PATH.map { |path| "-I#{path}" }, File.expand_path("../exe/offlock", __dir__)].freeze

  SERVER = <<~'RUBY'
    def compute = loop { 1000.times.sum }
    Thread.new { compute }.name = "computing"
    Thread.new { loop { sleep 0.001 } }.name = "serving"
    sleep 0.1
    $stdout.sync = true
  RUBY

  def setup
    @folder = Dir.mktmpdir
    @before = ENV.fetch("XDG_RUNTIME_DIR", nil)
    ENV["XDG_RUNTIME_DIR"] = @folder
  end

  def teardown
    ENV["XDG_RUNTIME_DIR"] = @before
    FileUtils.rm_rf(@folder)
  end

  def test_a_running_process_is_recorded_again_and_again
    serve("puts Process.pid; $stdin.read") do |server|
      assert_equal server.pid, Integer(server.gets), "the command is replaced by the program"
      2.times do
        output = record(server.pid, "--for", "0.5s", "-o", path("web.offlock"))
        assert_includes output, "computing"
        assert_recorded(summary_of(path("web.offlock")))
      end
    end
    assert_empty Dir.children(path("offlock"))
  end

  def test_the_view_shows_the_threads_and_the_code_that_others_waited_for
    serve("puts Process.pid; $stdin.read") do |server|
      server.gets
      output = IO.popen({ "COLUMNS" => "140" }, [*COMMAND, "top", server.pid.to_s, "-n", "1"], &:read)
      assert_predicate $CHILD_STATUS, :success?
      rows = output.lines.map(&:split).reject(&:empty?).to_h { |row| [row.first, row] }
      assert_operator Float(rows.fetch(server.pid.to_s)[1].delete("%")), :>, 50, "the lock is held"
      assert_operator Float(rows.fetch("computing")[2].delete("%")), :>, 50, "it runs"
      assert_operator Float(rows.fetch("serving")[3].delete("%")), :>, 10, "it waits"
      assert_match(/computing \(\d+%\)$/, output, "behind that thread")
      assert_match(/(Integer#times|Enumerable#sum|compute) +-e:1$/, output, "the code that others waited for")
    end
  end

  def test_forked_workers_are_recorded_by_their_own_numbers
    program = <<~'RUBY'
      child = fork do
        Thread.new { compute }.name = "worker"
        puts Process.pid
        loop { sleep 0.001 }
      end
      $stdin.read
      Process.kill(:KILL, child)
      Process.wait(child)
    RUBY
    serve(program) do |server|
      child = Integer(server.gets)
      record(child, "--for", "0.3s", "--no-summary", "-o", path("worker.offlock"))
      assert_includes summary_of(path("worker.offlock"))["threads"].map { |thread| thread["name"] }, "worker"
      record(server.pid, "--for", "0.3s", "--no-summary", "-o", path("master.offlock"))
      assert_includes summary_of(path("master.offlock"))["threads"].map { |thread| thread["name"] }, "computing"
    end
  end

  def test_a_program_publishes_itself
    assert_equal [true, false], [Offlock::Lock.publish, Offlock::Lock.publish]
    record(Process.pid, "--for", "0.2s", "--no-summary", "-o", path("own.offlock"))
    assert_equal [true, false], [Offlock::Lock.unpublish, Offlock::Lock.unpublish]
    assert_includes summary_of(path("own.offlock"))["threads"].map { |thread| thread["name"] }, "main"
    assert_includes record("--for", "1s", succeeds: false), "no process can be recorded"
  end

  def test_a_process_that_becomes_a_daemon_is_published_again
    program = "r, w = IO.pipe; $stdout.sync = true; Process.daemon(true, true); puts Process.pid; $stdin.read"
    serve(program) do |server|
      record(Integer(server.gets), "--for", "0.1s", "--no-summary", "-o", path("daemon.offlock"))
      assert_nil summary_of(path("daemon.offlock"))["damage"]
    end
  end

  private

  def path(name) = File.join(@folder, name)

  def serve(program, &)
    IO.popen([*COMMAND, "run", "--", RbConfig.ruby, "-e", SERVER + program], "r+", &)
  end

  def record(*arguments, succeeds: true)
    output = IO.popen([*COMMAND, "record", *arguments.map(&:to_s)], err: %i[child out], &:read)
    assert_equal succeeds, $CHILD_STATUS.success?, output
    output
  end

  def summary_of(path)
    JSON.parse(IO.popen([*COMMAND, "summary", "--json", path], &:read))
  end

  def assert_recorded(summary)
    assert_equal [nil, 0, 0], summary.values_at("damage", "lost", "violations")
    threads = summary["threads"].to_h { |thread| [thread["name"], thread] }
    assert_empty %w[main computing serving] - threads.keys
    assert_operator threads["computing"]["times"]["running"], :>, 200_000_000
    assert_operator threads["serving"]["contended"]["count"], :>, 2
    assert_includes summary["code"]["lines"].map { |line| line["function"] }.join(" "), "sum"
  end
end
