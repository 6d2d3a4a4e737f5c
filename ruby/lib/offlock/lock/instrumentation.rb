# frozen_string_literal: true

module Offlock
  module Lock
    # While a trace runs: what the recorder cannot see by itself. The names of threads and Ractors that come and go,
    # garbage collections, and which idling is a `sleep`.
    module Instrumentation
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
          RactorNames.install
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
    private_constant :Instrumentation
  end
end
