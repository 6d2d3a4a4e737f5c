# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "socket"
require "tmpdir"

# Traces of scenarios with known results, and events that traces must survive.
class LockTest < Minitest::Test
  include Texts

  MS = 1_000_000

  # Holds the lock, except for time slices of others, for this much processor time.
  def compute(seconds)
    finish = cpu + seconds
    nil while cpu < finish
  end

  def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  def run_threads(**bodies)
    bodies.map { |name, body| Thread.new { named(name, &body) } }.each(&:join)
  end

  def named(name)
    Thread.current.name = name.to_s
    yield
  end

  # Returns the summary of a scenario. Checks the invariants of every trace.
  def measured(&scenario)
    summary = Offlock::Lock.measure(&scenario).to_h
    assert_equal 0, summary[:violations]
    assert_equal 0, summary[:lost]
    assert_nil summary[:damage]
    summary[:threads].each { |thread| assert_equal thread[:lifetime], thread[:times].values.sum, thread[:name] }
    summary
  end

  def thread_named(summary, name)
    found = summary[:threads].select { |thread| thread[:name] == name }
    assert_equal 1, found.size, name
    found.first
  end

  def test_two_computing_threads_share_the_lock_and_blame_each_other
    summary = measured { run_threads(a: -> { compute(0.3) }, b: -> { compute(0.3) }) }
    threads = %w[a b].map { |name| thread_named(summary, name) }
    threads.each do |thread|
      assert_operator thread[:times][:running], :>=, 280 * MS
      assert_operator thread[:times][:waiting], :>=, 80 * MS
    end
    rows = summary[:locks].first[:blame].to_h { |row| [summary[:threads][row[:thread]][:name], row] }
    rows.slice("a", "b").each do |waiter, row|
      by = row[:by].to_h { |index, waited| [summary[:threads][index][:name], waited] }
      assert_operator by[waiter == "a" ? "b" : "a"], :>=, 0.8 * row[:waited]
    end
  end

  def test_ten_computing_threads_take_turns
    names = (0...10).map { |number| :"counter #{number}" }
    summary = measured { run_threads(**names.to_h { |name| [name, -> { compute(0.1) }] }) }
    names.each { |name| assert_operator thread_named(summary, name.to_s)[:times][:running], :>=, 90 * MS }
    assert_operator summary[:locks].first[:mean_waiters], :>, 2
    assert(summary[:findings].any? { |finding| finding[:text].include?("held") })
  end

  # Sends requests to a server in another thread of this process.
  def requests(count)
    ours, theirs = UNIXSocket.pair
    server = Thread.new { named("server") { theirs.write("y") while theirs.read(1) } }
    count.times { ours.write("x") && ours.read(1) }
    ours.close
    server.join
  end

  def test_a_network_thread_waits_only_beside_a_counter
    alone = measured { run_threads(network: -> { requests(5) }) }
    refute(alone[:findings].any? { |finding| finding[:text].include?("briefly") })
    counts, done = Thread::Queue.new, false
    network = -> { counts.pop && requests(5) && done = true }
    counter = -> { (counts << true) && compute(0.001) until done }
    summary = measured { run_threads(network:, counter:) }
    names = summary[:threads].map { |thread| thread[:name] }
    rows = summary[:locks].first[:blame].select { |row| %w[network server].include?(names[row[:thread]]) }
    waited = rows.sum { |row| row[:waited] }
    behind = rows.flat_map { |row| row[:by] }.sum { |index, time| names[index] == "counter" ? time : 0 }
    assert_operator waited, :>, 100 * MS
    assert_operator behind, :>=, 0.5 * waited
  end

  def test_times_agree_with_the_clock
    nanoseconds = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
    inner = nil
    body = lambda do
      began = nanoseconds.call
      compute(0.05) || sleep(0.05)
      inner = nanoseconds.call - began
    end
    began = nanoseconds.call
    summary = measured { run_threads(a: body) }
    outer = nanoseconds.call - began
    assert_includes (0.999 * inner)..summary[:length], thread_named(summary, "a")[:lifetime]
    assert_operator summary[:length], :<=, 1.001 * outer
  end

  def test_sleep_is_told_apart_from_other_idling
    queue = Thread::Queue.new
    summary = measured do
      run_threads(sleeper: -> { sleep(0.1) && queue.push(1) }, kernel: -> { Kernel.sleep(0.1) }, waiter: -> { queue.pop })
    end
    %w[sleeper kernel].each do |name|
      assert_operator thread_named(summary, name)[:times][:sleep], :>=, 90 * MS
    end
    waiter = thread_named(summary, "waiter")[:times]
    assert_operator waiter[:idle], :>=, 80 * MS
    assert_equal 0, waiter[:sleep]
  end

  def test_an_operation_off_the_lock_is_shown_with_its_name_and_bytes
    text = text_of(1_000_000)
    operation, = measured { o200k.encode(text) }[:operations]
    assert_match(/\Atokens\./, operation[:name])
    assert_equal text.bytesize, operation[:bytes]
    assert_operator operation[:times][:off_lock], :>, 0
  end

  def test_marks_and_collections_are_shown
    summary = measured { assert_equal 5, Offlock::Lock.mark("checkout <script>") { GC.start || 5 } }
    assert_equal ["checkout <script>"], summary[:marks].map { |mark| mark[:name] }
    assert_operator summary[:times][:gc], :>, 0
  end

  def test_each_ractor_has_a_lock_of_its_own
    program = <<~RUBY
      body = proc { |seconds| finish = Process.clock_gettime(1) + seconds; nil while Process.clock_gettime(1) < finish }
      summary = Offlock::Lock.measure do
        Warning[:experimental] = false
        2.times.map { |i| Ractor.new(name: "worker\#{i}") do
          finish = Process.clock_gettime(1) + 0.1; nil while Process.clock_gettime(1) < finish
        end }.each(&:value)
      end
      puts summary.to_json
    RUBY
    output, status = run_ruby(program)
    assert_predicate status, :success?, output
    summary = JSON.parse(output[output.index("{")..], symbolize_names: true)
    assert_equal 0, summary[:violations]
    names = summary[:locks].map { |lock| lock[:name] }
    assert_includes names, "GVL"
    assert_equal 2, names.grep(/\AGVL of Ractor:#\d+ worker[01]\z/).size
  end

  def test_a_trace_is_started_from_the_main_ractor
    output, status = run_ruby(<<~'RUBY')
      Warning[:experimental] = false
      ["measure { 1 }", "trace('x') { 1 }", "start('x')"].each do |call|
        message = Ractor.new("Offlock::Lock.#{call}") do |source|
          eval(source)
        rescue Ractor::UnsafeError => e
          e.message
        end
        puts message.value
      end
      p Ractor.new { Offlock::Lock.mark("x") { Offlock::Lock::LocalTimer.monotonic_time } }.value
    RUBY
    refusal = "a trace is started from the main Ractor, and records all Ractors\n"
    assert_equal ["#{refusal * 3}0\n", true], [output, status.success?]
  end

  # Ruby threads that are not bound to a native thread each. Ruby itself may crash at the end of such a program, when its
  # shared native threads look for work while it frees its memory (see the guide), so this program skips that.
  def test_threads_may_change_their_native_threads
    output, status = with_mn_threads { run_ruby(<<~RUBY) }
      queue = Thread::Queue.new
      summary = Offlock::Lock.measure do
        workers = 20.times.map { Thread.new { 50.times { sleep 0.0001; queue << 1 } } }
        1_000.times { queue.pop }
        workers.each(&:join)
      end
      puts summary.to_json
      $stdout.flush
      exit!(0)
    RUBY
    assert_predicate status, :success?, output
    summary = JSON.parse(output, symbolize_names: true)
    assert_equal [0, 0], [summary[:violations], summary[:lost]]
    workers = summary[:threads].select { |thread| thread[:name].start_with?("-e:") }
    assert_equal 20, workers.size
    natives = workers.flat_map { |thread| thread[:natives] }
    assert(workers.all? { |thread| thread[:natives].any? })
    assert_operator natives.uniq.size, :<, 20
    summary[:threads].each { |thread| assert_equal thread[:lifetime], thread[:times].values.sum, thread[:name] }
  end

  def with_mn_threads
    before = ENV.fetch("RUBY_MN_THREADS", nil)
    ENV["RUBY_MN_THREADS"] = "1"
    yield
  ensure
    ENV["RUBY_MN_THREADS"] = before
  end

  # A thread may be interrupted when it is about to sleep.
  def test_interrupted_waits_leave_no_contradictions
    measured do
      sleepers = 4.times.map { Thread.new { loop { sleep 0.001 } } }
      finish = clock + 0.3
      while clock < finish
        sleepers.each(&:wakeup)
        Process.kill(:URG, Process.pid)
        sleep 0.0001
      end
      sleepers.each(&:kill).each(&:join)
    end
  end

  def test_ten_thousand_threads_come_and_go
    summary = measured { 10_000.times { Thread.new { named("short") { nil } }.join } }
    assert_equal 10_000, summary[:threads].count { |thread| thread[:name] == "short" }
  end

  def test_traces_may_overlap_and_start_and_stop_concurrently
    Dir.mktmpdir do |folder|
      stats = 32.times.map do |i|
        Thread.new { Offlock::Lock.trace("#{folder}/#{i}.offlock") { |trace| compute(0.005) || trace }.stop }
      end
      assert(stats.all? { |thread| thread.value.bytes.positive? })
    end
  end

  def test_the_process_has_one_trace_of_its_own
    Dir.mktmpdir do |folder|
      assert Offlock::Lock.start("#{folder}/a.offlock")
      refute Offlock::Lock.start("#{folder}/b.offlock")
      assert_operator Offlock::Lock.stop.events, :>=, 0
      assert_nil Offlock::Lock.stop
      refute_path_exists "#{folder}/b.offlock"
    end
  end

  def test_a_trap_handler_may_start_and_stop_the_trace
    Dir.mktmpdir do |folder|
      output, status = run_ruby(<<~RUBY, timeout: 300)
        trap(:USR1) { print Offlock::Lock.start("#{folder}/a.offlock") }
        trap(:USR2) { print Offlock::Lock.stop.class }
        trap(:HUP) { Offlock::GvlTracing.start("#{folder}/b.json") { 1 } && print("traced") }
        %i[USR1 USR2 HUP].each { |signal| Process.kill(signal, Process.pid); sleep 0.1 }
        # These signals come in addition to calls of the main thread and of another one.
        trap(:USR1) { Offlock::Lock.start("#{folder}/c.offlock") }
        trap(:USR2) { Offlock::Lock.stop }
        sender = Thread.new { 60.times { |i| Process.kill(i.even? ? :USR1 : :USR2, Process.pid); sleep 0.0005 } }
        other = Thread.new { Offlock::Lock.start("#{folder}/c.offlock"); Offlock::Lock.stop while sender.alive? }
        while sender.alive?
          Offlock::Lock.start("#{folder}/c.offlock")
          Offlock::Lock.stop
        end
        other.join
        Offlock::Lock.stop
        print Offlock::Lock.start("#{folder}/c.offlock"), Offlock::Lock.stop.class
      RUBY
      assert_equal ["trueOfflock::Lock::StatstracedtrueOfflock::Lock::Stats", true], [output, status.success?]
    end
  end

  def test_a_trap_handler_may_read_a_summary_and_stop_a_watch
    output, status = run_ruby(<<~RUBY)
      summary, watch = Offlock::Lock.measure { sleep 0.01 }, Offlock::Lock.watch_lock(hold: 1)
      trap(:USR1) { print defined?(JSON).inspect, summary.to_h[:length].class, summary.inspect[-10..], watch.stop.inspect, watch.running? }
      Process.kill(:USR1, Process.pid)
      sleep 0.1
    RUBY
    assert_equal ["nilInteger findings>nilfalse", true], [output, status.success?]
  end

  def test_a_summary_is_what_its_json_says
    require "json"
    summary = Offlock::Lock.measure do
      Offlock::Lock.mark("“mark” \\ \n") { Array.new(3) { |i| Thread.new { sleep i / 1e3 } }.each(&:join) }
    end
    assert_equal JSON.parse(summary.to_json, symbolize_names: true), summary.to_h
  end

  def test_only_its_owner_can_read_a_file_and_arguments_are_kept_only_if_asked
    Dir.mktmpdir do |folder|
      program = "$PROGRAM_NAME = 'app'; ARGV << '--password=secret'; " \
                "Offlock::Lock.trace('#{folder}/a.offlock') {}; Offlock::Lock.trace('#{folder}/b.offlock', arguments: true) {}"
      output, status = run_ruby(program)
      assert_predicate status, :success?, output
      %w[a b].each { |name| assert_equal 0o600, File.stat("#{folder}/#{name}.offlock").mode & 0o777 }
      kept = %w[a b].map { |name| File.binread("#{folder}/#{name}.offlock").include?("secret") }
      assert_equal [false, true], kept
      assert(%w[a b].all? { |name| File.binread("#{folder}/#{name}.offlock").include?("app") })
    end
  end

  def test_what_the_program_has_not_named_is_not_overwritten
    Dir.mktmpdir do |folder|
      File.write("#{folder}/report.offlock", "mine")
      File.write("#{folder}/victim", "precious")
      File.symlink("#{folder}/victim", "#{folder}/link.offlock")
      File.symlink("#{folder}/victim", "#{folder}/gvl.json")
      Offlock::Lock.trace("#{folder}/report.json") { nil }
      assert_raises(IOError) { Offlock::Lock.trace("#{folder}/link.offlock") { nil } }
      assert_raises(IOError) { Offlock::GvlTracing.start("#{folder}/gvl.json") { nil } }
      assert_equal %w[mine precious], [File.read("#{folder}/report.offlock"), File.read("#{folder}/victim")]
      assert_path_exists "#{folder}/report-2.offlock"
    end
  end

  def test_inspect_is_short
    trace = Offlock::Lock::Trace.new
    assert_equal "#<Offlock::Lock::Trace running>", trace.inspect
    trace.stop
    assert_match(/\A#<Offlock::Lock::Trace stopped, \d+ events>\z/, trace.inspect)
    assert_match(/\A#<Offlock::Lock::Summary [\d.e-]+ s, \d+ events, \d+ threads, \d+ locks, \d+ findings>\z/, trace.summary.inspect)
  end

  def test_threads_of_ractors_are_called_by_them
    output, status = run_ruby(<<~RUBY)
      Warning[:experimental] = false
      summary = Offlock::Lock.measure do
        others = 9.times.map { Ractor.new { 100_000.times { nil } } }
        [Ractor.new(name: "indexer") { Thread.new { sleep 0.001 }.join }, *others].each(&:value)
        Thread.new { sleep 0.001 }.join
      end
      puts "", summary.to_json
    RUBY
    assert_predicate status, :success?, output
    summary = JSON.parse(output[output.index("{")..], symbolize_names: true)
    names = summary[:threads].map { |thread| thread[:name] }
    refute_includes names, "thread"
    assert_includes names, "indexer"
    assert_includes names, "indexer, thread 2"
    assert_equal 9, names.grep(/\ARactor #\d+\z/).uniq.size
    refute_match(/switch(es)? less|\b0 times a second/i, summary[:findings].to_s)
  end

  def test_the_module_has_the_name_of_the_lock_too
    assert_same Offlock::Lock, Offlock::GVL
  end

  def test_a_file_that_cannot_be_written_is_an_errno
    error = assert_raises(Errno::ENOENT) { Offlock::Lock::Trace.new("/missing/folder/a.offlock") }
    assert_equal "No such file or directory - /missing/folder/a.offlock", error.message
  end

  def test_live_numbers
    metrics = [Offlock::Lock::GlobalTimer, Offlock::Lock::LocalTimer, Offlock::Lock::WaitingThreads]
    metrics.each { |metric| assert metric.enable }
    Offlock::Lock::GlobalTimer.reset
    threads = 3.times.map { Thread.new { compute(0.3) || sleep } }
    timers = threads.map { |thread| Offlock::Lock::LocalTimer.for(thread) }
    most = others = 0
    deadline = clock + 30
    until timers.all? { |timer| timer.acquisitions >= 2 }
      assert_operator clock, :<, deadline
      sleep 0.005
      others = [others, Thread.list.size - 1].max
      most = [most, Offlock::Lock::WaitingThreads.count].max
    end
    assert_includes 1..others, most # a thread that another test has killed may still be ending
    assert(timers.all? { |timer| timer.monotonic_time > 5 * MS })
    assert_operator Offlock::Lock::GlobalTimer.monotonic_time, :>=, timers.sum(&:monotonic_time)
    assert_operator timers.first.histogram.sum(&:last), :>=, 1
    threads.each(&:kill).each(&:join)
  ensure
    metrics.each(&:disable)
    assert(metrics.none?(&:enabled?))
    metrics.each { |metric| assert_equal 0, metric.reset }
    assert_equal 0, Offlock::Lock::WaitingThreads.count
  end

  def test_a_threads_numbers_outlive_it
    assert Offlock::Lock::LocalTimer.enable
    threads = 3.times.map { Thread.new { compute(0.02) || Offlock::Lock::LocalTimer.monotonic_time } }
    threads.each do |thread|
      assert_operator thread.value, :<=, Offlock::Lock::LocalTimer.for(thread).monotonic_time
      assert_operator Offlock::Lock::LocalTimer.for(thread).acquisitions, :>=, 1
    end
  ensure
    Offlock::Lock::LocalTimer.disable
  end

  def test_the_names_of_others_keep_their_programs_working
    assert_equal 0, Offlock::GVLTools::WaitingThreads.count
    assert_kind_of Integer, Offlock::GVLTools::LocalTimer.monotonic_time
    assert_kind_of Integer, Offlock::GVLTools::GlobalTimer.monotonic_time
    Dir.mktmpdir do |folder|
      Offlock::GvlTracing.start("#{folder}/b.json")
      assert_raises(JSON::ParserError) { JSON.parse(File.read("#{folder}/b.json")) }
      Offlock::GvlTracing.stop
      assert_kind_of Array, JSON.parse(File.read("#{folder}/b.json"))
      path = Offlock::GvlTracing.start("#{folder}/a.json") { Thread.new { compute(0.01) }.join }
      assert_equal "#{folder}/a.json", path
      threads = JSON.parse(File.read(path)).select { |event| event["ph"] == "B" }.group_by { |event| event["tid"] }
      assert_includes(threads.values.map { |events| events.map { |event| event["name"] }.values_at(0, -1) }, %w[started died])
      assert_raises(RuntimeError) { Offlock::GvlTracing.stop }
    end
  end

  # Runs in a new process, because other tests may have left threads behind.
  def test_the_count_of_waiting_threads_stays_as_it_was_at_the_end
    output, status = run_ruby(<<~RUBY)
      waiting = Offlock::GVLTools::WaitingThreads
      waiting.enable
      begin
        waiting.reset
      rescue Offlock::GVLTools::Error
        print "enabled "
      end
      compute = lambda do |seconds|
        finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
      end
      thread = Thread.new { compute.(0.02) || waiting.disable }
      compute.(0.001) while waiting.enabled?
      thread.join
      print [waiting.count, waiting.reset, waiting.count]
    RUBY
    assert_equal ["enabled [1, 0, 0]", true], [output, status.success?]
  end

  def test_a_forked_child_leaves_the_parents_trace_alone_and_makes_its_own
    Dir.mktmpdir do |folder|
      output, status = run_ruby(<<~RUBY)
        Offlock::Lock.trace("#{folder}/parent.offlock") do |trace|
          Thread.new { sleep }
          Process.wait(fork do
            exit!(1) if trace.running? || trace.stop
            Offlock::Lock.trace("#{folder}/child.offlock") { 1_000_000.times { nil } }
            exit!(0)
          end)
          abort "the child failed" unless $?.success?
        end
      RUBY
      assert_predicate status, :success?, output
      assert_equal %w[child.offlock parent.offlock], Dir.children(folder).sort
    end
  end

  def test_after_a_kill_the_file_is_readable_up_to_the_last_flush
    Dir.mktmpdir do |folder|
      _, status = run_ruby(<<~RUBY)
        Offlock::Lock.start("#{folder}/a.offlock")
        100.times { sleep 0.001 }
        sleep 0.1
        Process.kill(:KILL, Process.pid)
      RUBY
      assert_equal 9, status.termsig
      output, status = command("summary", "#{folder}/a.offlock")
      assert_predicate status, :success?, output
      assert_includes output, "not stopped"
    end
  end

  def test_the_command_traces_an_unchanged_program_and_its_children
    Dir.mktmpdir do |folder|
      File.write("#{folder}/app.rb", <<~'RUBY')
        puts gets
        $stdout.flush
        system(RbConfig.ruby, "-e", "puts :child")
        exit 7
      RUBY
      output, status = command("trace", "-o", "#{folder}/app.offlock", "--", RbConfig.ruby, "#{folder}/app.rb", input: "hello\n")
      assert_equal 7, status.exitstatus, output
      assert_match(/\Ahello\nchild\n/, output)
      assert_includes output, "GVL: held"
      assert_equal 2, Dir["#{folder}/app*.offlock"].size
    end
  end

  def test_a_trace_is_complete_when_the_program_ends_without_stopping_it
    Dir.mktmpdir do |folder|
      output, status = run_ruby(%(Offlock::Lock.start("#{folder}/a.offlock"); 1_000_000.times { nil }))
      assert_predicate status, :success?, output
      refute_includes command("summary", "#{folder}/a.offlock").first, "not stopped"
    end
  end

  def test_a_program_that_replaces_itself_keeps_its_file
    Dir.mktmpdir do |folder|
      program = "exec(RbConfig.ruby, '-e', 'puts gets')"
      output, status = command("trace", "-o", "#{folder}/a.offlock", "--", RbConfig.ruby, "-e", program, input: "hello\n")
      assert_predicate status, :success?, output
      assert_match(/\Ahello\n/, output)
      assert_equal ["a.offlock"], Dir.children(folder)
    end
  end

  # Runs the gem's command; returns its output and its exit status.
  def command(*arguments, input: "")
    options = $LOAD_PATH.map { |path| "-I#{path}" }
    Open3.capture2e(RbConfig.ruby, *options, File.expand_path("../exe/offlock", __dir__), *arguments, stdin_data: input)
  end
end
