# frozen_string_literal: true

module Offlock
  module Lock
    # The size of a trace, and whether it is complete.
    #
    # @!attribute [r] events
    #   @return [Integer] the number of recorded events
    # @!attribute [r] lost
    #   @return [Integer] the number of lost events, because threads filled the buffers faster than the writer emptied
    #     them, or because the trace reached its limit
    # @!attribute [r] bytes
    #   @return [Integer] the size of the trace in bytes
    Stats = Data.define(:events, :lost, :bytes)

    # A recording of how all threads use the lock. Several traces may run at the same time. A trace that is running when
    # the program ends is stopped and completed. If the program is killed, the file can be read up to the last flush,
    # some milliseconds earlier. A forked child writes nothing to its parent's trace. With `OFFLOCK_LOCK=off` in the
    # environment a trace never runs, writes no file, and has an empty summary that gives the reason.
    #
    # Only its owner can read the file. It contains the program's name, but its arguments, which may be secret, only on
    # request.
    class Trace
      # The trace that `offlock trace` requested.
      #
      # @return [Trace, nil] nil if `offlock trace` did not start the program, or its time is over
      def self.from_environment
        return unless ENV.key?("OFFLOCK_TRACE")

        trace = allocate
        trace if trace.record_environment
      end

      # Stops the traces that this process records, before it exits without its `at_exit` handlers.
      # @private
      def self.stop_all
        RUNNING.dup.each do |trace|
          trace.stop
        rescue SystemCallError, IOError => e
          # No exception: the program's exit status is its own.
          warn "offlock: process #{Process.pid}: the trace could not be completed: #{e.message}"
        end
      end

      # Writes what the traces of this process keep.
      # @private
      def self.dump_all = RUNNING.dup.each(&:dump_beside)

      # Starts recording.
      #
      # @param path [String, Pathname, nil] the file; nil records into memory. A regular file is replaced, a symbolic
      #   link rejected. If the name is that of another tool's format (`app.pftrace` for Perfetto, `app.gvl.json`,
      #   `app.firefox.json`, `app.speedscope.json`, `app.json` for the summary), the file is written at the end, from a
      #   trace beside it (`app.offlock`, or `app-2.offlock` if that exists, and so on).
      # @param limit [Integer, nil] the maximum size of the trace in bytes; {Stats#lost} counts the events beyond it
      # @param arguments [Boolean] whether to store the program's arguments
      # @param stacks [Numeric, nil] record which code held the lock once a thread has waited for it for this many
      #   seconds; nil records none
      # @param gvl_tracing [Boolean] whether to write gvl-tracing's format, regardless of the name
      # @raise [ArgumentError] if +stacks+ is negative, or not a number
      # @raise [SystemCallError] if the file cannot be written
      # @raise [IOError] if the path is something that offlock does not replace
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one, which records all Ractors
      def initialize(path = nil, limit: nil, arguments: false, stacks: STACKS, gvl_tracing: false)
        Instrumentation.check_ractor
        record do
          about = Instrumentation.about(arguments)
          bounds = [limit, stacks&.to_f]
          Native::Recorder.start([path&.to_s, gvl_tracing], about, Instrumentation.threads, Ractor.current, bounds)
        end
      end

      # @private
      # @return [Boolean] whether there is something to record
      def record_environment
        about = Instrumentation.about(!ENV["OFFLOCK_TRACE_ARGUMENTS"].to_s.empty?)
        record { Native::Recorder.from_environment(about, Instrumentation.threads, Ractor.current) }
      end

      # @private
      def dump_beside = @recorder.dump_beside(Instrumentation.threads)

      # Whether the trace needs the events that the recorder cannot observe by itself.
      # @private
      def wants_events? = @recorder.nil? || running?

      # Whether tracing was switched off when the trace was made, so that it records nothing.
      # @private
      def off? = @off

      # @return [Boolean] whether this process is recording the trace
      def running? = @recorder.running?

      # Stops recording and completes the file. A second call changes nothing.
      #
      # @return [Stats, nil] nil in a process that was forked from the recording one, and for a trace that is switched
      #   off
      # @raise [SystemCallError] if the end of the file could not be written
      def stop
        return @stats unless running?

        Instrumentation.name_ractors
        numbers = @recorder.stop(Instrumentation.threads)
        @stats = Stats.new(*numbers) if numbers
        @stats
      ensure
        leave
      end

      # The summary of a stopped trace that was recorded into memory.
      #
      # @return [Summary, nil] nil for a trace into a file, and while the trace is running
      def summary
        return if running?

        @summary ||= @recorder.summary&.then { |texts| Summary.new(*texts) }
      end

      # @return [String] whether the trace is running, and the number of its events
      def inspect
        return "#<#{self.class} stopped, #{@stats.events} events>" if @stats

        "#<#{self.class} #{state("of another process")}>"
      end

      private

      def state(otherwise)
        return "switched off" if off?

        running? ? "running" : otherwise
      end

      def record(&)
        @off = !Native.switched_off.nil?
        return !(@recorder = yield).nil? if off?

        record_with_events(&)
      end

      def record_with_events
        RUNNING << self
        Instrumentation.attend(RUNNING)
        @recorder = yield
        Instrumentation.name_ractors
        !@recorder.nil?
      ensure
        leave unless @recorder
      end

      def leave
        RUNNING.delete(self)
        Instrumentation.attend(RUNNING)
      end

      # After how many seconds of waiting for the lock stacks are recorded, by default.
      STACKS = 0.001

      # The traces to stop when the program ends.
      RUNNING = [] # rubocop:disable Style/MutableConstant
      private_constant :RUNNING
      at_exit { stop_all }
    end
  end
end
