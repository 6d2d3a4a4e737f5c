# frozen_string_literal: true

module Offlock
  # Starts and completes the traces of the processes that `offlock trace` traces.
  module Autotrace
    # Starts the trace of this process. A process that cannot be traced runs without one.
    def self.start
      Lock::Trace.from_environment
    rescue SystemCallError, IOError => e
      warn "offlock: process #{Process.pid} is not traced: #{e.message}"
    end

    # A forked child starts a trace. A process that becomes a daemon continues in a child, which starts a trace.
    module Forks
      def _fork
        super.tap { |pid| Autotrace.start if pid.zero? }
      end

      def daemon(...)
        Lock::Trace.stop_all
        super.tap { Autotrace.start }
      end
    end

    # A process that exits without its `at_exit` handlers completes its trace first.
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
