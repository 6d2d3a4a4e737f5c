# frozen_string_literal: true

module Offlock
  module Lock
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
        Instrumentation.check_ractor
        record do
          about = Instrumentation.about(arguments)
          Native::Recorder.start([path&.to_s, gvl_tracing], about, Instrumentation.threads, Ractor.current, limit)
        end
      end

      # @private
      def record_environment
        about = Instrumentation.about(!ENV["OFFLOCK_TRACE_ARGUMENTS"].to_s.empty?)
        record { Native::Recorder.from_environment(about, Instrumentation.threads, Ractor.current) }
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

        Instrumentation.name_ractors
        numbers = @recorder.stop(Instrumentation.threads)
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
        Instrumentation.attend(RUNNING)
        @recorder = yield
        Instrumentation.name_ractors
      ensure
        leave unless @recorder
      end

      def leave
        RUNNING.delete(self)
        Instrumentation.attend(RUNNING)
      end

      # The traces to stop when the program ends.
      RUNNING = [] # rubocop:disable Style/MutableConstant
      private_constant :RUNNING
      at_exit { stop_all }
    end
  end
end
