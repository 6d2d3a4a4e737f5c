# frozen_string_literal: true

module Offlock
  # The beginnings and ends of processes that `offlock trace` traces.
  module Autotrace
    # A process that cannot be traced runs all the same.
    def self.start
      Lock::Trace.from_environment
    rescue SystemCallError, IOError => e
      warn "offlock: process #{Process.pid} is not traced: #{e.message}"
    end

    # What a forked child does first, and a process before it becomes a daemon, which is a child of its own.
    module Forks
      def _fork
        super.tap { |pid| Autotrace.start if pid.zero? }
      end

      def daemon(...)
        Lock::Trace.stop_all
        super.tap { Autotrace.start }
      end
    end

    # A process that leaves without its `at_exit` handlers completes its trace.
    module Exits
      def exit!(...)
        Lock::Trace.stop_all
        super
      end
    end

    start
    Process.singleton_class.prepend(Forks, Exits)
    Kernel.singleton_class.prepend(Exits)
    Kernel.prepend(Exits.dup.module_eval { private(:exit!) && self })
  end
end
