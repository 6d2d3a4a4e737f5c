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
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
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
        Instrumentation.check_ractor
        Instrumentation.exclusively(nil) do
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
  end
end

require_relative "lock/instrumentation"
require_relative "lock/sleep"
require_relative "lock/ractor_names"
require_relative "lock/trace"
require_relative "lock/summary"
require_relative "lock/metric"
require_relative "lock/global_timer"
require_relative "lock/local_timer"
require_relative "lock/waiting_threads"
