# frozen_string_literal: true

module Offlock
  # See Ruby's lock: who holds it, who waits for it, for how long and behind whom.
  #
  # Record a file for `offlock summary` and `offlock report`:
  #
  #   Offlock::Lock.trace("app.trace") { serve }
  #
  # Or keep live numbers in production:
  #
  #   Offlock::Lock::GlobalTimer.enable
  #   statsd.gauge("lock.waited_ns", Offlock::Lock::GlobalTimer.monotonic_time)
  #
  # Recording is exact: Ruby's own instrumentation tells each time a thread asks for, gets or gives up its lock.
  # Each Ractor has a lock of its own.
  module Lock
    private_constant :Native

    # How a trace went.
    #
    # @!attribute [r] events
    #   @return [Integer] the number of events recorded
    # @!attribute [r] lost
    #   @return [Integer] the number of events missing, because threads were faster than the writer for longer
    #     than the buffers last, or because the trace reached its limit
    # @!attribute [r] bytes
    #   @return [Integer] the size of the trace
    Stats = Data.define(:events, :lost, :bytes)

    # A recording of what all threads do with the lock. Several may run at the same time. A trace that runs when
    # the program ends is stopped and complete; after a kill the file can be read up to the last flush, some
    # milliseconds before. A forked child writes nothing to its parent's trace.
    #
    # The file can be read by its owner only. It tells the program's name; its arguments, which may be secret, only if
    # that is asked for.
    class Trace
      # The trace that `offlock trace` asked for.
      #
      # @return [Trace, nil] nil when the program was started otherwise
      def self.from_environment
        allocate.tap(&:record_environment) if ENV.key?("OFFLOCK_TRACE")
      end

      # Stops the traces that this process records, before it leaves without its `at_exit` handlers.
      # @private
      def self.stop_all = RUNNING.dup.each(&:stop)

      # Starts recording.
      #
      # @param path [String, Pathname, nil] the file; memory when nil. A regular file that is there is replaced, a link
      #   refused. A name that stands for another tool's format (`app.pftrace` for Perfetto, `app.gvl.json`,
      #   `app.firefox.json`, `app.json` for the summary) gets that at the end, from a trace beside it (`app.offlock`,
      #   or `app-2.offlock` where that is there, and so on).
      # @param limit [Integer, nil] the most bytes to write; what comes after is counted in {Stats#lost}
      # @param arguments [Boolean] whether to keep the program's arguments
      # @param gvl_tracing [Boolean] whether to write gvl-tracing's format, whatever the name
      # @raise [SystemCallError] the file cannot be written
      # @raise [IOError] something is there that offlock does not replace
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one, from which all are recorded
      def initialize(path = nil, limit: nil, arguments: false, gvl_tracing: false)
        Present.check_ractor
        record do
          about = Present.about(arguments)
          Native::Recorder.start([path&.to_s, gvl_tracing], about, Present.threads, Ractor.current, limit)
        end
      end

      # @private
      def record_environment
        about = Present.about(!ENV["OFFLOCK_TRACE_ARGUMENTS"].to_s.empty?)
        record { Native::Recorder.from_environment(about, Present.threads, Ractor.current) }
      end

      # Whether to tell the recorder what it cannot see by itself.
      # @private
      def wants_events? = @recorder.nil? || running?

      # @return [Boolean] whether this process is recording it
      def running? = @recorder.running?

      # Stops recording and completes the file. A second call changes nothing.
      #
      # @return [Stats, nil] nil in a process that was forked from the one that records
      # @raise [SystemCallError] the end of the file could not be written
      def stop
        return @stats unless running?

        Present.name_ractors
        numbers = @recorder.stop(Present.threads)
        @stats = Stats.new(*numbers) if numbers
        @stats
      ensure
        leave
      end

      # What a stopped trace into memory amounts to.
      #
      # @return [Summary, nil] nil for a trace into a file
      def summary
        return if running?

        @summary ||= @recorder.summary&.then { |texts| Summary.new(*texts) }
      end

      # @return [String] whether it runs, and how it went
      def inspect
        return "#<#{self.class} stopped, #{@stats.events} events>" if @stats

        "#<#{self.class} #{running? ? "running" : "of another process"}>"
      end

      private

      def record
        RUNNING << self
        Present.attend(RUNNING)
        @recorder = yield
        Present.name_ractors
      ensure
        leave unless @recorder
      end

      def leave
        RUNNING.delete(self)
        Present.attend(RUNNING)
      end

      # The traces to stop when the program ends.
      RUNNING = [] # rubocop:disable Style/MutableConstant
      private_constant :RUNNING
      at_exit { stop_all }
    end

    # What a trace amounts to: times per thread, who kept whom waiting, findings.
    class Summary
      # @private
      def initialize(text, json)
        @text = text
        @json = json
      end

      # @return [Hash{Symbol => Object}] all numbers, times in nanoseconds; the keys are those of
      #   `offlock export --format json`
      def to_h
        require "json"
        JSON.parse(@json, symbolize_names: true)
      end

      # @return [String] {to_h} as JSON
      def to_json(*) = @json

      # @return [String] what `offlock summary` prints
      def to_s = @text

      # @return [String] the length of the recording, and how much there is in it
      def inspect
        numbers = to_h
        length = format("%.3g s", numbers[:length] / 1e9)
        counts = %i[threads locks findings].map { |kind| "#{numbers[kind].size} #{kind}" }
        "#<#{self.class} #{[length, "#{numbers[:events]} events", *counts].join(", ")}>"
      end
    end

    # The process's own trace: see {Lock.start}.
    @started = nil

    class << self
      # Records what happens in the block.
      #
      # @param path [String, Pathname] the file; one that is there is replaced
      # @param limit [Integer, nil] the most bytes to write
      # @param arguments [Boolean] whether to keep the program's arguments
      # @yieldparam trace [Trace]
      # @return what the block returns
      # @raise [SystemCallError] the file cannot be written
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one, from which all are recorded
      def trace(path, limit: nil, arguments: false)
        running = Trace.new(path, limit: limit, arguments: arguments)
        yield running
      ensure
        running&.stop
      end

      # Records the block to look at its summary.
      #
      # @yieldparam trace [Trace]
      # @return [Summary]
      def measure
        running = Trace.new
        begin
          yield running
        ensure
          running.stop
        end
        running.summary
      end

      # Starts the process's own trace, from any thread of the main Ractor or a trap handler, until {stop}.
      #
      # @param path [String, Pathname] the file; one that is there is replaced
      # @param limit [Integer, nil] the most bytes to write
      # @param arguments [Boolean] whether to keep the program's arguments
      # @return [Boolean] false, and nothing changes, when it is running already, or when a trap handler interrupts this
      #   very method or {stop}
      # @raise [SystemCallError] the file cannot be written
      # @raise [Ractor::UnsafeError] in another Ractor
      def start(path, limit: nil, arguments: false)
        Present.check_ractor
        Present.in_turn(false) do
          next false if @started&.running?

          @started = Trace.new(path, limit: limit, arguments: arguments)
          true
        end
      end

      # Stops what {start} started, from any thread of the main Ractor or a trap handler.
      #
      # @return [Stats, nil] nil when nothing was running, or when a trap handler interrupts this very method or {start}
      # @raise [Ractor::UnsafeError] in another Ractor
      def stop
        Present.check_ractor
        Present.in_turn(nil) do
          running, @started = @started, nil
          running&.stop
        end
      end

      # Names what the calling thread does in the block, for the report. Costs next to nothing while no trace runs.
      #
      # @param name [String]
      # @return what the block returns
      def mark(name)
        Native.mark_begin(name)
        yield
      ensure
        Native.mark_end
      end
    end

    # What the three kinds of live numbers have in common.
    module Metric
      # Starts measuring.
      # @return [Boolean] true
      def enable
        Native.enable(metric, Ractor.current) unless enabled?
        true
      end

      # Stops measuring; the numbers stay.
      # @return [Boolean] true
      def disable
        Native.disable(metric)
        true
      end

      # @return [Boolean] whether it is being measured
      def enabled? = Native.enabled?(metric)
    end
    private_constant :Metric

    # How long all threads together have waited for the lock. Reading never blocks.
    module GlobalTimer
      extend Metric

      class << self
        # @return [Integer] nanoseconds waited since the last {reset}, in waits that are over
        def monotonic_time = Native.global_numbers.first

        # @return [Integer] how often a thread got the lock since the last {reset}
        def acquisitions = Native.global_numbers.last

        # @return [Array<Array(Integer, Integer)>] pairs of a duration in ns (at most 1/32 off) and how many waits
        #   took that long, shortest first
        def histogram = Native.waits(nil)

        # Sets the numbers back to zero.
        # @return [Integer] 0
        def reset
          Native.reset_global
          0
        end

        private

        def metric = "global"
      end
    end

    # How long one thread has waited for the lock. Reading never blocks.
    class LocalTimer
      extend Metric

      class << self
        # @return [LocalTimer] the numbers of a thread
        def for(thread) = new(thread)

        # @return [Integer] nanoseconds the calling thread has waited, in waits that are over
        def monotonic_time = new(Thread.current).monotonic_time

        # Sets the calling thread's numbers back to zero.
        # @return [Integer] 0
        def reset = new(Thread.current).reset

        # Starts measuring. What a thread of the main Ractor has come to is known also when it has ended.
        # @return [Boolean] true
        def enable
          last_numbers.enable if Ractor.current == Ractor.main
          super
        end

        # Stops measuring; the numbers stay.
        # @return [Boolean] true
        def disable
          last_numbers.disable if Ractor.current == Ractor.main
          super
        end

        private

        def metric = "local"

        # They stay with the thread object.
        def last_numbers
          @last_numbers ||= TracePoint.new(:thread_end) do
            Thread.current.thread_variable_set(LAST, Native.local_numbers(Thread.current).freeze)
          end
        end
      end

      # Where an ended thread keeps its numbers.
      LAST = :offlock_lock_numbers
      private_constant :LAST

      # @param thread [Thread]
      def initialize(thread)
        @thread = thread
      end

      # @return [Integer] nanoseconds the thread has waited since the last {#reset}, in waits that are over
      def monotonic_time = numbers[0]

      # @return [Integer] how often the thread got the lock since the last {#reset}
      def acquisitions = numbers[1]

      # @return [Integer] how often the thread gave up the lock since the last {#reset}
      def releases = numbers[2]

      # @return [Array<Array(Integer, Integer)>] as {GlobalTimer.histogram}
      def histogram = Native.waits(@thread)

      # Sets the thread's numbers back to zero.
      # @return [Integer] 0
      def reset
        Native.reset_local(@thread)
        0
      end

      private

      def numbers
        (@thread.thread_variable_get(LAST) unless @thread.alive?) || Native.local_numbers(@thread)
      end
    end

    # How many threads wait for a lock at this moment. Reading never blocks.
    module WaitingThreads
      extend Metric

      class << self
        # @return [Integer] the number of threads that wait, or that waited when {disable} was called
        def count = Native.waiting

        # Sets the number back to zero, and counts from there. {enable} does that, too.
        # @return [Integer] 0
        def reset
          Native.reset_waiting
          0
        end

        private

        def metric = "waiting"
      end
    end

    # While a trace runs: what the recorder cannot see by itself. The names of threads and Ractors that come and go,
    # garbage collections, and which idling is a `sleep`.
    module Present
      class << self
        # Attends to events if one of the traces wants to know of them. Threads and trap handlers may come between any two
        # steps, so whoever was here last looks whether things are as they should be.
        def attend(traces)
          loop do
            wanted = traces.any?(&:wants_events?)
            wanted ? watch : ignore
            break if traces.any?(&:wants_events?) == wanted
          end
        end

        # Calls the block when no other thread is in one; in a trap handler, too, where a Mutex cannot be locked.
        #
        # @return what the block returns; +otherwise+ when the handler interrupts the block itself
        def in_turn(otherwise)
          result = otherwise
          sleep(0.001) while Native.in_turn(Thread.current.object_id) { result = yield } == :busy
          result
        end

        def check_ractor
          return if Ractor.current == Ractor.main

          raise Ractor::UnsafeError, "a trace is started from the main Ractor, and records all Ractors"
        end

        def about(arguments)
          [
            %w[language ruby],
            ["runtime", "#{RUBY_ENGINE} #{RUBY_VERSION}"],
            ["command", [$PROGRAM_NAME, *(ARGV if arguments)].join(" ")],
          ]
        end

        # @return [Array<Array(Thread, String, Boolean)>] the threads, their names, and whether they want the lock
        def threads = Thread.list.map { |thread| [thread, name_of(thread), thread.status == "run"] }

        # Looking for Ractors takes time with the lock, so it is done only where there are some.
        def name_ractors
          return name_ractor(Ractor.main) if Ractor.count == 1

          ObjectSpace.each_object(Ractor) { |ractor| name_ractor(ractor) }
        end

        # "GVL" is the main Ractor's lock, "GVL of Ractor:#2 worker" another's. Its threads are called "worker", or
        # "Ractor #2" if it has no name.
        def name_ractor(ractor)
          return Native.name_ractor(ractor, "GVL", nil) if ractor == Ractor.main

          own, number = ractor.inspect.match(/\A#<(Ractor:(#\d+)(?: (?!\S+:\d+ )\S+)?)/)&.captures
          Native.name_ractor(ractor, "GVL of #{own}", ractor.name || "Ractor #{number}")
        end

        private

        def watch
          Sleep.install
          Names.install
          gc_point.enable
          thread_points.each(&:enable)
        end

        def ignore
          gc_point.disable
          thread_points.each(&:disable)
        end

        # A thread without a name is called by where its block begins.
        def name_of(thread)
          return thread.name if thread.name
          return "main" if thread == Thread.main

          thread.inspect[%r{ (?:.*/)?([^/ ]+:\d+) \w+>\z}, 1] || "thread"
        end

        def gc_point
          @gc_point ||= Native.gc_point
        end

        # A thread's name is known from before its first line, and as it was at its end.
        def thread_points
          @thread_points ||= %i[thread_begin thread_end].map do |event|
            TracePoint.new(event) { Native.name_thread(Thread.current, name_of(Thread.current)) }
          end
        end
      end
    end
    private_constant :Present

    # Tells `sleep` apart from other idling. Once a trace has run, each `sleep` costs some 100 ns more.
    module Sleep
      # Sleeps as ever.
      def sleep(...)
        Native.sleeps = true
        super
      ensure
        Native.sleeps = false
      end
      private :sleep

      def self.install
        return if @installed

        @installed = true
        Kernel.prepend(self)
        Kernel.singleton_class.prepend(dup.module_eval { public(:sleep) && self })
      end
    end
    private_constant :Sleep

    # Tells the recorder the names of Ractors that are made while a trace runs.
    module Names
      # Makes a Ractor as ever.
      def new(...) = super.tap { |ractor| Present.name_ractor(ractor) }

      def self.install
        Ractor.singleton_class.prepend(self) unless Ractor.singleton_class.include?(self)
      end
    end
    private_constant :Names
  end
end
