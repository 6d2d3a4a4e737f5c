# frozen_string_literal: true

module Offlock
  module Lock
    # A wait for the lock, or a hold of it, that was too long.
    #
    # @!attribute [r] holder
    #   @return [String] the name of the thread that held the lock, of a wait the one that held it longest; empty if unknown
    # @!attribute [r] waiting
    #   @return [String] the name of the thread that waited longest
    # @!attribute [r] nanoseconds
    #   @return [Integer] how long it waited, or the lock was held while it waited, until now
    # @!attribute [r] over
    #   @return [Boolean] whether that has ended
    # @!attribute [r] text
    #   @return [String] all of this in a sentence
    # @!attribute [r] stack
    #   @return [Array<Array(String, String, Integer)>] the holder's stack, innermost call first: function, file and
    #     line; empty if it is unknown
    Alarm = Data.define(:holder, :waiting, :nanoseconds, :over, :text, :stack) do
      alias_method :over?, :over
      alias_method :to_s, :text
    end

    # A recording of the last seconds in bounded memory, for programs that run for long. It writes a trace of these
    # seconds on request, or by itself when a thread waits for the lock for too long:
    #
    #   recorder = Offlock::Lock::FlightRecorder.new(path: "/var/tmp/app.offlock", dump_on_wait: 0.2)
    #   recorder.on_hold(0.15) { |alarm| Rails.logger.warn(alarm) }
    #
    # The dumps are traces like others, for `offlock summary` and `offlock report`. In a forked child the recorder starts
    # again, with nothing kept, and with the process id in the names of the files that it writes by itself.
    #
    # With `OFFLOCK_LOCK=off` in the environment it is made as usual, but does not run: it keeps nothing, {#dump} writes
    # nothing and returns nil, and the blocks of {#on_wait} and {#on_hold} are never called.
    class FlightRecorder < Trace
      # The name of the threads that call the blocks of {#on_wait} and {#on_hold}.
      # @private
      WATCH = "offlock watch"

      # Starts recording.
      #
      # @param seconds [Numeric] how much of the past to keep
      # @param memory [Integer] the maximum number of bytes that it takes, at least 1 MiB; it keeps less of the past if
      #   needed
      # @param path [String, Pathname, nil] where dumps are written that nobody asked for. Existing files stay:
      #   `app.offlock` is followed by `app-2.offlock` and so on.
      # @param dump_on_wait [Numeric, nil] write a dump once a thread has waited for the lock for this many seconds
      # @param dump_on_hold [Numeric, nil] write a dump once a thread has held the lock for this many seconds while
      #   another one waited
      # @param interval [Numeric] the least number of seconds between two such dumps
      # @param most [Integer] the maximum number of such dumps
      # @param arguments [Boolean] whether to store the program's arguments
      # @param stacks [Numeric, nil] as for {Trace#initialize}
      # @raise [ArgumentError] if a number of seconds is negative, or not a number
      # @raise [IOError] if there is a reason to write dumps but no path, or too little memory
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one, which records all Ractors
      # rubocop:disable Lint/MissingSuper, Metrics/ParameterLists -- it records something else, with more options
      def initialize(seconds: 30, memory: 64 << 20, path: nil, dump_on_wait: nil, dump_on_hold: nil, interval: 60,
                     most: 10, arguments: false, stacks: STACKS)
        Instrumentation.check_ractor
        @about = Instrumentation.about(arguments)
        @kept = [stacks&.to_f, [seconds.to_f, memory]]
        @dumps = [dump_on_wait&.to_f, dump_on_hold&.to_f, interval.to_f, most]
        @path = path&.to_s
        @watches = []
        start
        return if off?

        Forks.add(self)
      end
      # rubocop:enable Lint/MissingSuper, Metrics/ParameterLists

      # Writes the trace of the last seconds to a file. The recording goes on.
      #
      # @param path [String, Pathname] the file
      # @return [Stats, nil] the numbers of that trace; nil if the recorder is stopped or switched
      #   off
      # @raise [SystemCallError] if the file cannot be written. An existing file then stays as it was.
      def dump(path)
        numbers = @recorder.dump(path.to_s, Instrumentation.threads)
        Stats.new(*numbers) if numbers
      end

      # @return [Integer] the number of bytes that the last seconds take now; 0 once it is stopped, and if it is switched off
      def memory = @recorder.memory || 0

      # Calls the block soon after a thread has waited for the lock for this many seconds: in a thread of its own, once
      # for each such wait, also while the wait goes on. An exception that it raises is written to standard error.
      #
      # @param seconds [Numeric]
      # @yieldparam alarm [Alarm]
      # @return [void]
      def on_wait(seconds, &block) = watch("wait", seconds, block)

      # Calls the block soon after a thread has held the lock for this many seconds while another one waited. As
      # {on_wait}. While the lock is held, the thread that calls the block needs it, too: it calls as soon as it gets it.
      #
      # @param seconds [Numeric]
      # @yieldparam alarm [Alarm]
      # @return [void]
      def on_hold(seconds, &block) = watch("hold", seconds, block)

      # As {on_wait}, also for offlock's own threads.
      #
      # @private
      def on_any_wait(seconds, &block) = watch("wait", seconds, block, own: true)

      # Stops recording and forgets what was kept. A second call changes nothing.
      #
      # @return [Stats, nil] the numbers of what was kept; nil in a process that was forked from the recording one
      def stop
        Forks.remove(self)
        super
      end

      # @return [String] whether the recorder is running, and the bytes that it takes
      def inspect = "#<#{self.class} #{state("stopped")}, #{memory} bytes>"

      # @private
      def start_again
        @path &&= @path.sub(%r{(\.[^./]*)?\z}) { ".#{Process.pid}#{_1}" }
        watches, @watches = @watches, []
        @stats = nil
        start
        watches.each { |watched, seconds, block, own| watch(watched, seconds, block, own:) }
      end

      private

      def start
        record do
          Native::Recorder.keep(@about, Instrumentation.threads, Ractor.current, @kept, [@path, *@dumps])
        end
      end

      def watch(watched, seconds, block, own: false)
        raise ArgumentError, "no block given" unless block
        return if off?

        watch = @recorder.watch(watched, seconds.to_f, own) or raise IOError, "the flight recorder is stopped"
        @watches << [watched, seconds, block, own]
        thread = Thread.new do
          while (names, nanoseconds, over, text, stack = watch.next)
            tell(Alarm.new(*names, nanoseconds, over, text, stack), block)
          end
        end
        thread.name = WATCH
        nil
      end

      def tell(alarm, block)
        block.call(alarm)
      rescue StandardError => e
        warn "offlock: the block of on_wait or on_hold raised #{e.full_message(highlight: false)}"
      end
    end
  end
end
