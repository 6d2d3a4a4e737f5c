# frozen_string_literal: true

require "json"
require "open3"
require "tmpdir"

require_relative "test_helper"

# `offlock dump` prints what the threads of running processes do, with their stacks.
class DumpTest < Minitest::Test
  COMMAND = [RbConfig.ruby, *$LOAD_PATH.map { |path| "-I#{path}" }, File.expand_path("../exe/offlock", __dir__)].freeze

  SLEEP = RUBY_VERSION < "3.4" ? "Kernel.sleep" : "Kernel#sleep"

  BEGIN_ = <<~'RUBY'
    require "fiddle"

    def ready
      sleep 0.2
      puts Process.pid
      $stdout.flush
    end

    def start(name, &) = Thread.new(&).tap { |thread| thread.name = name }
    def compute = loop { 1000.times.sum }
    def serve = loop { sleep 0.001 }

    # Holds the lock in a function in C.
    def hold(seconds)
      usleep = Fiddle::Handle::DEFAULT["usleep"]
      Fiddle::Function.new(usleep, [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true).call((seconds * 1e6).to_i)
    end
  RUBY

  def setup
    @folder = Dir.mktmpdir
    @before = ENV.fetch("XDG_RUNTIME_DIR", nil)
    ENV["XDG_RUNTIME_DIR"] = @folder
    @programs = []
  end

  def teardown
    @programs.each do |program|
      Process.kill(:KILL, program.pid)
      program.close
    end
    ENV["XDG_RUNTIME_DIR"] = @before
    FileUtils.rm_rf(@folder)
  end

  def test_every_thread_is_shown_with_its_state_and_stack
    program = serve("start('computing') { compute }; start('serving') { serve }; ready; $stdin.read")
    sleep 0.5 # until the main thread reads
    states = []
    3.times do
      threads = threads_of(program.pid)
      assert_equal "idle", threads.fetch("main")["state"]
      assert_equal program.pid, threads["main"]["native_id"]
      assert_equal "IO#read", functions(threads["main"]).first
      assert_equal "<main>", functions(threads["main"]).last
      assert_match(%r{/app0\.rb\z}, threads["main"]["frames"].last["file"])
      assert_includes functions(threads.fetch("computing")), "Object#compute"
      states << threads["computing"]["state"]
      assert_includes functions(threads.fetch("serving")), "Object#serve"
      assert_equal threads["computing"]["name"], threads["serving"]["behind"] if threads["serving"]["state"] == "waiting"
    end
    # Between two turns it is off the lock, and asleep if a thread that passes the lock on has no processor then.
    assert_operator states.count("idle"), :<=, 1, states.inspect
    text = dump(program.pid)
    assert_match(/^main \(#{program.pid}\): idle$/, text)
    assert_match(%r{^  Object#compute +\S+/app0\.rb:\d+$}, text)
  end

  def test_a_process_whose_threads_are_all_idle_answers
    program = serve(<<~'RUBY')
      queue, mutex = Queue.new, Mutex.new
      start("popping") { queue.pop }
      mutex.lock
      start("locking") { mutex.lock }
      start("reading") { IO.pipe.first.read }
      start("polling") { sleep }
      ready
      start("late") { sleep 0.5 }.join
      sleep 60
      puts "awake"
      $stdout.flush
    RUBY
    sleep 1
    3.times do
      begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      threads = threads_of(program.pid)
      assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun, :<, 4
      expected = { "main" => SLEEP, "popping" => "Thread::Queue#pop", "locking" => "Thread::Mutex#lock",
                   "reading" => "IO#read", "polling" => SLEEP }
      assert_equal expected, expected.keys.to_h { |name| [name, functions(threads.fetch(name)).first] }
      assert_equal ["idle"], threads.values.map { |thread| thread["state"] }.uniq
    end
    assert_nil program.wait_readable(0.3), "the main thread sleeps on"
  end

  def test_a_thread_that_does_not_give_up_the_lock_is_named
    program = serve("start('serving') { serve }; ready; hold(15)")
    sleep 0.5
    result = JSON.parse(dump("--json", "--timeout", "700ms", program.pid))
    assert_match(/\Amain did not give up the lock within 700ms/, result["obstacle"])
    main, serving = %w[main serving].map { |name| result["threads"].find { |thread| thread["name"] == name } }
    assert_equal ["running", []], main.values_at("state", "frames")
    assert_operator main["nanoseconds"], :>, 300_000_000
    assert_equal %w[waiting main], serving.values_at("state", "behind")
    assert_operator serving["nanoseconds"], :>, 300_000_000
    text = dump("--timeout", "200ms", program.pid)
    assert_match(/^Stacks are missing: main did not give up the lock/, text)
    assert_match(/^serving: has waited for the lock for .*, behind main$/, text)
  end

  def test_many_dumps_at_once_and_many_threads
    program = serve(<<~'RUBY')
      queue = Queue.new
      1000.times { |number| start("many-#{number}") { queue.pop } }
      start("computing") { compute }
      ready
      $stdin.read
    RUBY
    found = Array.new(20) { Thread.new { threads_of("--timeout", "20s", program.pid) } }.map(&:value)
    found.each do |threads|
      many = threads.select { |name, _| name.start_with?("many-") }.values
      assert_equal 1000, many.size
      assert_equal ["Thread::Queue#pop"], many.map { |thread| functions(thread).first }.uniq
    end
  end

  def test_forked_workers_are_dumped_by_their_own_numbers
    program = serve(<<~'RUBY')
      begun, tells = IO.pipe
      child = fork do
        start("worker") { tells.close; serve }
        def wait = sleep
        wait
      end
      tells.close
      begun.read # until the child has a worker
      ready
      puts child
      $stdout.flush
      $stdin.read
    RUBY
    child = Integer(program.gets)
    sleep 0.5
    threads = threads_of(child)
    assert_equal SLEEP, functions(threads.fetch("main")).first
    assert_includes functions(threads["main"]), "Object#wait"
    assert_includes functions(threads.fetch("worker")), "Object#serve"
    both = JSON.parse(dump("--json"))["processes"]
    assert_empty [child, program.pid] - both.map { |process| process["pid"] }
  ensure
    Process.kill(:KILL, child) if child
  end

  # Not both at once: a child may then hang in Ruby 3.4 itself.
  ["Array.new(20) { Thread.new { sleep 0.001 } }.each(&:join)", "Process.wait(fork { exit!(0) })"].each_with_index do |work, index|
    define_method(:"test_forks_and_threads_that_begin_and_end_meanwhile_disturb_nothing_#{index}") do
      program = serve(%[start("other") { loop { #{work} } }; ready; $stdin.read])
      20.times { assert_equal "IO#read", functions(threads_of(program.pid).fetch("main")).first }
    end
  end

  def test_threads_of_other_ractors_are_shown_without_stacks
    program = serve(<<~'RUBY')
      Warning[:experimental] = false
      Ractor.new(name: "worker") { loop { 1000.times.sum } }
      ready
      $stdin.read
    RUBY
    result = JSON.parse(dump("--json", program.pid))
    assert_equal "those of threads in other Ractors are not read", result["obstacle"]
    threads = result["threads"].to_h { |thread| [thread["name"], thread] }
    assert_equal "IO#read", functions(threads.fetch("main")).first
    assert_equal 2, threads.size
  end

  def test_a_process_that_is_stopped_or_gone_is_explained
    program = serve("ready; $stdin.read")
    Process.kill(:STOP, program.pid)
    assert_includes dump(program.pid, succeeds: false), "the process does not answer: is it stopped?"
    Process.kill(:CONT, program.pid)
    assert_includes threads_of(program.pid), "main"
    Process.kill(:KILL, program.pid)
    sleep 0.2
    assert_includes dump(program.pid, succeeds: false), "no process of this user and number can be recorded"
  end

  private

  # Starts a program that calls `ready` once it can be dumped.
  def serve(program)
    path = File.join(@folder, "app#{@programs.size}.rb")
    File.write(path, BEGIN_ + program)
    @programs << IO.popen([*COMMAND, "run", "--", RbConfig.ruby, path], "r+")
    assert_equal @programs.last.pid, Integer(@programs.last.gets)
    @programs.last
  end

  def dump(*arguments, succeeds: true)
    output, status = Open3.capture2e(*COMMAND, "dump", *arguments.map(&:to_s))
    assert_equal succeeds, status.success?, output
    output
  end

  def threads_of(*arguments)
    result = JSON.parse(dump("--json", *arguments))
    assert_nil result["obstacle"]
    result["threads"].to_h { |thread| [thread["name"], thread] }
  end

  def functions(thread) = thread["frames"].map { |frame| frame["function"] }
end
