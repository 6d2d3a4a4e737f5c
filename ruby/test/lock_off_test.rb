# frozen_string_literal: true

require "tmpdir"

require_relative "support/public_methods"
require_relative "test_helper"

# With OFFLOCK_LOCK=off nothing that traces or measures hooks anything, starts a thread or writes a file. The names come
# from the signatures, so that none is forgotten.
class LockOffTest < Minitest::Test
  include Texts

  REASON = "tracing is switched off by OFFLOCK_LOCK=off"

  # Results, which do nothing by themselves.
  RESULTS = /\AOfflock::Lock::(?:Stats|Alarm|LateEvent|LateCount)#/

  # Programs for the public methods. Each checks what the methods return; `folder` is empty before and after.
  CALLS = {
    "Offlock::Lock.obstacle" => "check L.obstacle == REASON",
    "Offlock::Lock.trace" => "check L.trace(File.join(folder, 'a.offlock')) { |trace| !trace.running? }",
    "Offlock::Lock.measure Offlock::Lock::Summary#to_h Offlock::Lock::Summary#to_json Offlock::Lock::Summary#to_s" => <<~'RUBY',
      summary = L.measure { Thread.new { sleep 0.001 }.join }
      check summary.to_h[:threads] == [] && summary.to_json.start_with?("{")
      check summary.to_s.split.join(" ").include?("Nothing was recorded, because #{REASON}.")
      check summary.inspect.include?("0 threads")
    RUBY
    "Offlock::Lock.start Offlock::Lock.stop" => <<~'RUBY',
      check L.start("#{folder}/a.offlock") == false
      check L.stop.nil?
      L.start_or_stop
      L.dump_kept
    RUBY
    "Offlock::Lock.publish Offlock::Lock.unpublish" => <<~'RUBY',
      ENV["OFFLOCK_LIVE"] = "1"
      L.publish_if_requested
      ENV.delete("OFFLOCK_LIVE")
      check [L.publish, L.unpublish] == [false, false]
    RUBY
    [
      "Offlock::Lock.watch_loop", *%w[number nanoseconds counts running? stop].map { |name| "Offlock::Lock::LoopWatch##{name}" },
    ].join(" ") => <<~'RUBY',
      require "support/small_scheduler"
      Thread.new do
        Fiber.set_scheduler(SmallScheduler.new)
        Fiber.schedule do
          watch = L.watch_loop(threshold: 0.001) { exit! 1 }
          check watch.inspect == "#<Offlock::Lock::LoopWatch stopped, 0 late>"
          sleep 0.01
          Fiber.blocking { sleep 0.1 }
          check [watch.running?, watch.number, watch.nanoseconds, watch.stop] == [false, 0, 0, nil]
          check watch.counts.values.map(&:number) == [0] * 5
        end
      end.join
      event = L::LateEvent.new("callback", "computed", 2, 2, *[0] * 4, "main", "f", "a.rb", 1, "", [], "", [])
      check [event.text.include?("f (a.rb:1) took"), event.exact?] == [true, true]
    RUBY
    "Offlock::Lock.watch_lock #{%w[number running? stop].map { |name| "Offlock::Lock::LockWatch##{name}" }.join(" ")}" => <<~'RUBY',
      watch = L.watch_lock(hold: 0, wait: 0, interval: 0)
      check watch.inspect == "#<Offlock::Lock::LockWatch stopped, 0 too long>"
      check [watch.running?, watch.number, watch.stop] == [false, 0, nil]
    RUBY
    "Offlock::Lock.mark" => 'check L.mark("work") { 1 } == 1',
    "Offlock::Lock::Trace#running? Offlock::Lock::Trace#stop Offlock::Lock::Trace#summary" => <<~'RUBY',
      %w[a.offlock a.pftrace a.gvl.json].each do |name|
        trace = L::Trace.new("#{folder}/#{name}", limit: 1, arguments: true)
        check trace.inspect == "#<Offlock::Lock::Trace switched off>"
        check [trace.running?, trace.stop, trace.summary, trace.running?] == [false, nil, nil, false]
      end
    RUBY
    "Offlock::Lock::Trace.from_environment" => <<~'RUBY',
      ENV["OFFLOCK_TRACE"] = "#{folder}/asked.offlock"
      check L::Trace.from_environment.nil?
      ENV["OFFLOCK_TRACE_KEEP"] = "1s"
      check L::Trace.from_environment.nil?
      require "offlock/autotrace"
      ENV.delete("OFFLOCK_TRACE")
    RUBY
    %w[dump memory on_wait on_hold].map { |name| "Offlock::Lock::FlightRecorder##{name}" }.join(" ") => <<~'RUBY',
      recorder = L::FlightRecorder.new(path: "#{folder}/a.offlock", dump_on_wait: 0, dump_on_hold: 0)
      check recorder.inspect == "#<Offlock::Lock::FlightRecorder switched off, 0 bytes>"
      recorder.on_wait(0) { exit! 1 }
      recorder.on_hold(0) { exit! 1 }
      check [recorder.dump("#{folder}/b.offlock"), recorder.memory, recorder.summary] == [nil, 0, nil]
      Process.wait(fork { exit!(!recorder.running? && Thread.list.size == 1) })
      check $?.success?
      check [recorder.running?, recorder.stop] == [false, nil]
    RUBY
    "Offlock::Lock::Rack#call" => <<~'RUBY',
      app = L::Rack.new(->(_) { [200, {}, ["answer"]] })
      check app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" }) == [200, {}, ["answer"]]
    RUBY
    [
      *%w[enable disable enabled?].map { |name| "Offlock::Lock::Metric##{name}" },
      *%w[monotonic_time acquisitions histogram reset].map { |name| "Offlock::Lock::GlobalTimer.#{name}" },
      *%w[for monotonic_time reset].map { |name| "Offlock::Lock::LocalTimer.#{name}" },
      *%w[monotonic_time acquisitions releases histogram reset].map { |name| "Offlock::Lock::LocalTimer##{name}" },
      *%w[count reset].map { |name| "Offlock::Lock::WaitingThreads.#{name}" },
      *%w[count enable disable enabled? reset].map { |name| "Offlock::GVLTools::WaitingThreads.#{name}" },
    ].join(" ") => <<~'RUBY',
      metrics = [L::GlobalTimer, L::LocalTimer, L::WaitingThreads, Offlock::GVLTools::WaitingThreads]
      metrics.each { |metric| check [metric.enable, metric.enabled?] == [false, false] }
      Array.new(3) { Thread.new { 10.times { sleep 0.001 } } }.each(&:join)
      own = L::LocalTimer.for(Thread.current)
      [L::GlobalTimer, own].each do |timer|
        check [timer.monotonic_time, timer.acquisitions] == [0, 0]
        check timer.histogram.sum(&:last).zero?
      end
      check [L::LocalTimer.monotonic_time, own.releases, L::WaitingThreads.count] == [0, 0, 0]
      check [L::GlobalTimer, L::LocalTimer, own, *metrics.last(2)].map(&:reset) == [0] * 5
      check metrics.map(&:disable) == [true] * 4
      check metrics.last.count.zero?
    RUBY
    "Offlock::GvlTracing.start Offlock::GvlTracing.stop" => <<~'RUBY',
      check Offlock::GvlTracing.start("#{folder}/a.json").nil?
      check Offlock::GvlTracing.stop == "#{folder}/a.json"
      check Offlock::GvlTracing.start("#{folder}/a.json") { 1 } == "#{folder}/a.json"
    RUBY
    "Offlock::MinitestAssertions#assert_lock_held_at_most" => <<~'RUBY',
      require "offlock/minitest"
      test = Object.new.extend(Minitest::Assertions, Offlock::MinitestAssertions)
      test.singleton_class.attr_accessor(:assertions)
      test.assertions = 0
      check test.assert_lock_held_at_most(0) { 100_000.times.sum } == 4_999_950_000
    RUBY
  }.freeze

  # What tracing changes while it is on, or from then on.
  PRELUDE = <<~'RUBY'
    require "json"
    require "tmpdir"
    L = Offlock::Lock
    def check(holds) = holds || raise(caller.first)
    def state
      {
        threads: [Thread.list.size, Dir.glob("/proc/self/task/*/comm").map { |name| File.read(name) }.grep(/offlock/)],
        modules: [Kernel, Kernel.singleton_class, Process.singleton_class, Thread, Ractor.singleton_class].map(&:ancestors),
        points: ObjectSpace.each_object(TracePoint).count(&:enabled?),
        signal: trap("USR1", "DEFAULT"),
      }
    end
    ENV["OFFLOCK_SIGNAL"] = "USR1"
    trap("USR1", "DEFAULT")
    folder = Dir.mktmpdir
    at_exit { Dir.rmdir(folder) }
  RUBY

  def setup
    @before = ENV.fetch("OFFLOCK_LOCK", nil)
    ENV["OFFLOCK_LOCK"] = "off"
  end

  def teardown
    ENV["OFFLOCK_LOCK"] = @before
  end

  def test_no_entry_point_is_forgotten
    assert_equal PublicMethods.in("lock").grep_v(RESULTS).sort, CALLS.keys.flat_map(&:split).sort
  end

  def test_nothing_is_hooked_started_or_written
    calls = CALLS.map do |names, program|
      "begin\n#{program}\nend\ncheck Dir.empty?(folder)\n" \
        "raise #{names.inspect} + \" changed \#{before} to \#{state}\" if state != before"
    end
    output, status = run_ruby("#{PRELUDE}REASON = #{REASON.inspect}\nbefore = state\n#{calls.join("\n")}\nprint 'unchanged'")
    assert_equal ["unchanged", true], [output, status.success?]
  end

  def test_the_checks_see_what_runs_and_an_unknown_value_switches_nothing_off
    ENV["OFFLOCK_LOCK"] = "of"
    starts = ["L::Trace.new", "L::FlightRecorder.new", "L::LocalTimer.enable"]
    seen = starts.map do |start|
      run_ruby("#{PRELUDE}before = state\n#{start}\nsleep 0.1\nprint state.select { |name, value| value != before[name] }.keys").first
    end
    assert_equal ["[:threads, :modules, :points]", "[:threads, :modules, :points]", "[:points]"], seen
  end

  def test_the_command_runs_the_program_without_a_trace
    Dir.mktmpdir do |folder|
      program = "print ENV.keys.grep(/OFFLOCK_TRACE/), ENV['RUBYOPT'].to_s[/autotrace/].inspect; exit 7"
      command = [RbConfig.ruby, *$LOAD_PATH.map { |path| "-I#{path}" }, File.expand_path("../exe/offlock", __dir__)]
      arguments = %W[trace --report -o #{folder}/app.offlock -- #{RbConfig.ruby} -e #{program}]
      output = IO.popen([*command, *arguments], err: %i[child out], &:read)
      assert_equal 7, $CHILD_STATUS.exitstatus
      assert_equal "offlock: #{REASON}: the program runs without a trace\n[]nil", output
      assert_empty Dir.children(folder)
    end
  end
end
