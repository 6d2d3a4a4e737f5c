# frozen_string_literal: true

module Offlock
  module Lock
    # Reports events that the recorder cannot observe by itself while a trace is running: the names of threads and
    # Ractors that start and end, garbage collections, and calls of `sleep`.
    module Instrumentation
      class << self
        # Enables the events if one of the traces needs them, and disables them otherwise. Threads and trap handlers may
        # run between any two steps, so each caller checks at the end whether the state is right.
        def attend(traces)
          loop do
            wanted = traces.any?(&:wants_events?)
            wanted ? watch : ignore
            break if traces.any?(&:wants_events?) == wanted
          end
        end

        # Calls the block when no other thread is in one. Works in trap handlers, too, where a Mutex cannot be locked.
        #
        # @return the value of the block; +otherwise+ if a trap handler interrupts the block itself
        def exclusively(otherwise)
          result = otherwise
          sleep(0.001) while Native.exclusively(Thread.current.object_id) { result = yield } == :busy
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

        # @return [Array<Array(Thread, String, Boolean)>] the threads, their names, and whether they are ready to run
        def threads = Thread.list.map { |thread| [thread, name_of(thread), thread.status == "run"] }

        # The search for Ractors takes time with the lock held, so it is skipped when there is only the main Ractor.
        def name_ractors
          return name_ractor(Ractor.main) if Ractor.count == 1

          ObjectSpace.each_object(Ractor) { |ractor| name_ractor(ractor) }
        end

        # "GVL" is the main Ractor's lock, "GVL of Ractor:#2 worker" that of another one. The threads of that Ractor are
        # named "worker", or "Ractor #2" if the Ractor has no name.
        def name_ractor(ractor)
          return Native.name_ractor(ractor, "GVL", nil) if ractor == Ractor.main

          own, number = ractor.inspect.match(/\A#<(Ractor:(#\d+)(?: (?!\S+:\d+ )\S+)?)/)&.captures
          Native.name_ractor(ractor, "GVL of #{own}", ractor.name || "Ractor #{number}")
        end

        private

        def watch
          Sleep.install
          RactorNames.install
          ThreadNames.install
          gc_point.enable
          thread_points.each(&:enable)
        end

        def ignore
          gc_point.disable
          thread_points.each(&:disable)
        end

        # A thread without a name is named after the position of its block.
        def name_of(thread)
          return thread.name if thread.name
          return "main" if thread == Thread.main

          thread.inspect[%r{ (?:.*/)?([^/ ]+:\d+) \w+>\z}, 1] || "thread"
        end

        def gc_point
          @gc_point ||= Native.gc_point
        end

        # Reports a thread's name before the thread runs its first line, and again at its end.
        def thread_points
          @thread_points ||= %i[thread_begin thread_end].map do |event|
            TracePoint.new(event) { Native.name_thread(Thread.current, name_of(Thread.current)) }
          end
        end
      end
    end
    private_constant :Instrumentation
  end
end
