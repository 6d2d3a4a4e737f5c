# frozen_string_literal: true

require "offlock/offlock"

module Offlock
  # Traces Ruby's lock: which thread holds it, which threads wait for it, for how long and for which holder.
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
  # Recording is exact: Ruby's own instrumentation reports each time a thread requests, acquires or releases its lock.
  # Each Ractor has its own lock.
  #
  # `OFFLOCK_LOCK=off` (or `0`, `no`, `false`) in the environment switches all of this off: nothing is hooked or started,
  # and no file is written. Traces and flight recorders can be made as usual, but do not run, and live numbers are zero.
  module Lock
    private_constant :Native

    # The trace that {Lock.start} starts, one per process.
    @started = nil
    # Whether, and how, the process is published; see {Lock.publish}.
    @live = nil

    class << self
      # @return [String, nil] the reason why nothing is traced or measured in this process: `OFFLOCK_LOCK=off` in the
      #   environment; nil if it can be
      def obstacle = Native.switched_off

      # Records a trace while the block runs.
      #
      # @param path [String, Pathname] the file; an existing file is replaced
      # @param limit [Integer, nil] the maximum size of the trace in bytes
      # @param arguments [Boolean] whether to store the program's arguments
      # @param stacks [Numeric, nil] see {Trace#initialize}
      # @yieldparam trace [Trace]
      # @return the value of the block
      # @raise [SystemCallError] if the file cannot be written
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one, which records all Ractors
      def trace(path, limit: nil, arguments: false, stacks: Trace::STACKS)
        running = Trace.new(path, limit: limit, arguments: arguments, stacks: stacks)
        yield running
      ensure
        running&.stop
      end

      # Records a trace in memory while the block runs, and returns its summary.
      #
      # @param stacks [Numeric, nil] see {Trace#initialize}
      # @yieldparam trace [Trace]
      # @return [Summary]
      def measure(stacks: Trace::STACKS)
        running = Trace.new(stacks: stacks)
        begin
          yield running
        ensure
          running.stop
        end
        running.summary
      end

      # Starts the trace of the process, which runs until {stop}. May be called from any thread of the main Ractor and
      # from a trap handler.
      #
      # @param path [String, Pathname] the file; an existing file is replaced
      # @param limit [Integer, nil] the maximum size of the trace in bytes
      # @param arguments [Boolean] whether to store the program's arguments
      # @param stacks [Numeric, nil] see {Trace#initialize}
      # @return [Boolean] true if it started the trace; false if the trace is running already, in a trap handler that
      #   interrupts this method or {stop}, or with `OFFLOCK_LOCK=off` in the environment
      # @raise [SystemCallError] if the file cannot be written
      # @raise [Ractor::UnsafeError] in another Ractor
      def start(path, limit: nil, arguments: false, stacks: Trace::STACKS)
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
          next false if @started&.running?

          @started = Trace.new(path, limit: limit, arguments: arguments, stacks: stacks)
          @started.running?
        end
      end

      # Stops the trace of the process. May be called from any thread of the main Ractor and from a trap handler.
      #
      # @return [Stats, nil] nil if the trace was not running, or in a trap handler that interrupts this method or
      #   {start}
      # @raise [Ractor::UnsafeError] in another Ractor
      def stop
        Instrumentation.check_ractor
        Instrumentation.exclusively(nil) do
          running, @started = @started, nil
          running&.stop
        end
      end

      # Starts the trace that `offlock trace` asked for or, if it is running, stops it. Called from a trap handler.
      # @private
      def start_or_stop
        Instrumentation.exclusively(nil) do
          running, @started = @started, nil
          running&.running? ? running.stop : @started = Trace.from_environment
        end
      end

      # Writes the last seconds that `offlock trace --keep` asked for. Called from a trap handler.
      # @private
      def dump_kept
        Instrumentation.exclusively(nil) { Trace.dump_all }
      end

      # Publishes this process, so that `offlock record` can take traces from it while it runs, and `offlock dump` show its
      # stacks, without root. So does `OFFLOCK_LIVE=1` in the environment. Nothing is recorded until the command connects.
      # The socket lies in a folder that only this user can enter, and forked children get one of their own.
      #
      # @param stacks [Numeric, nil] whether traces have stacks: nil for none. `offlock record --stacks` says from which
      #   wait on.
      # @return [Boolean] true if it published the process; false if it is published already, or with
      #   `OFFLOCK_LOCK=off` in the environment
      # @raise [SystemCallError, IOError] if the socket cannot be made
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def publish(stacks: Trace::STACKS)
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
          next false if @live&.running?

          @live = Live.new(stacks)
          @live.running?
        end
      end

      # Ends the recordings of `offlock record`, and allows no more.
      #
      # @return [Boolean] whether the process was published
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def unpublish
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
          live, @live = @live, nil
          was_published = live&.running? || false
          live&.stop
          was_published
        end
      end

      # Publishes the process if the environment asks for it. A process that cannot be published goes on.
      # @private
      def publish_if_requested
        publish if Native.live_requested?
      rescue SystemCallError, IOError => e
        warn "offlock: process #{Process.pid} is not published: #{e.message}"
      end

      # Logs each hold of the lock, and each wait for it, that takes too long, until {LockWatch#stop}:
      #
      #   watch = Offlock::Lock.watch_lock(hold: 0.2, logger: Rails.logger)
      #
      # A line has the threads, the time so far, and the holder's function, file and line, soon after the limit is passed,
      # also while it goes on. While a watch runs, a {FlightRecorder} does, too. A forked child watches as well. With
      # `OFFLOCK_LOCK=off` in the environment nothing is watched.
      #
      # @param hold [Numeric, nil] after how many seconds a thread has held the lock for too long while another one
      #   waited; nil for never. Of threads that
      #   compute in Ruby, the interpreter takes the lock away after 100 ms.
      # @param wait [Numeric, nil] after how many seconds a thread has waited for it for too long; nil for never
      # @param interval [Numeric] the least number of seconds between two lines. The next line says how many were left out.
      # @param logger [#warn, nil] gets the lines; without one they go to standard error
      # @return [LockWatch]
      # @raise [ArgumentError] if a number is out of range, or both +hold+ and +wait+ are nil
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def watch_lock(hold: 0.15, wait: nil, interval: 1, logger: nil)
        LockWatch.new(hold:, wait:, interval:, logger:)
      end

      # Tells why the event loop of this thread's fiber scheduler is late, whenever it is late by more than +threshold+ seconds,
      # until {LoopWatch#stop}:
      #
      #   Async do
      #     watch = Offlock::Lock.watch_loop(logger: Rails.logger)
      #     serve
      #   end
      #
      # Each time there is a line in the log, the block is called, {LoopWatch#counts} grows, and a trace that runs gets a mark
      # `late: callback`, `late: iteration` or `late: wakeup`. It works with any object that implements Ruby's interface of fiber
      # schedulers, such as that of the gem async: what is measured is when Ruby switches between the thread's fibers. While a
      # watch runs, a {FlightRecorder} and {LocalTimer} do, too. A forked child watches nothing. With `OFFLOCK_LOCK=off` in the
      # environment nothing is watched.
      #
      # @param threshold [Numeric] a number of seconds, at least 0.001
      # @param logger [#warn, nil] gets the lines; without one they go to standard error
      # @yieldparam event [LateEvent] in a thread of the watch's own, some milliseconds after the delay; after up to 0.2 s, if
      #   the holder of the lock, or the fiber's stack, is not known before. An exception that the block raises is logged.
      # @return [LoopWatch]
      # @raise [ArgumentError] if +threshold+ is out of range
      # @raise [RuntimeError] if this thread has no fiber scheduler, or its loop is being watched already
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def watch_loop(threshold: 0.05, logger: nil, &on_late) = LoopWatch.new(threshold, logger, on_late)

      # Labels the work of the calling thread in the block, for the report. Costs almost nothing while no trace is
      # running.
      #
      # @param name [String] the label
      # @return the value of the block
      def mark(name)
        Native.mark_begin(name)
        yield
      ensure
        Native.mark_end(nil)
      end
    end
  end

  # Another name of {Lock}, which reads like a mutex where it is used.
  GVL = Lock
end

require_relative "lock/instrumentation"
require_relative "lock/sleep"
require_relative "lock/ractor_names"
require_relative "lock/thread_names"
require_relative "lock/trace"
require_relative "lock/forks"
require_relative "lock/flight_recorder"
require_relative "lock/log"
require_relative "lock/lock_watch"
require_relative "lock/live"
require_relative "lock/summary"
require_relative "lock/metric"
require_relative "lock/global_timer"
require_relative "lock/local_timer"
require_relative "lock/loop_watch"
require_relative "lock/waiting_threads"
require_relative "lock/rack"
