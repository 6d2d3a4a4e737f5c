# frozen_string_literal: true

module Offlock
  # Starts and completes the traces of the processes that `offlock trace` traces.
  module Autotrace
    # Starts the trace of this process, unless a signal is to do that. A process that cannot be traced runs without one.
    def self.start
      guard { Lock::Trace.from_environment } if keeps? || !ENV["OFFLOCK_SIGNAL"]
    end

    # Whether the last seconds are kept, instead of all.
    def self.keeps? = ENV.key?("OFFLOCK_TRACE_KEEP")

    # Makes the signal start the trace, and stop it when it comes again, or write the last seconds. Forked children
    # inherit this.
    def self.start_at_signal(name)
      trap(name) { guard { keeps? ? Lock.dump_kept : Lock.start_or_stop } }
    rescue ArgumentError => e
      warn "offlock: process #{Process.pid} is not traced: #{e.message}"
    end

    def self.guard
      yield
    rescue SystemCallError, IOError => e
      warn "offlock: process #{Process.pid} is not traced: #{e.message}"
    end
    private_class_method :guard

    # A forked child starts a trace. A process that becomes a daemon continues in a child, which starts a trace.
    module Forks
      def _fork
        super.tap { |pid| Autotrace.start if pid.zero? }
      end

      def daemon(...)
        Lock::Trace.stop_all
        super.tap do
          Autotrace.start
          Lock.publish_if_requested
        end
      end
    end

    # A process that exits without its `at_exit` handlers completes its trace first.
    module Exits
      def exit!(...)
        Lock::Trace.stop_all
        super
      end
    end

    def self.install
      start
      start_at_signal(ENV["OFFLOCK_SIGNAL"]) if ENV["OFFLOCK_SIGNAL"]
      Process.singleton_class.prepend(Forks, Exits)
      Kernel.singleton_class.prepend(Exits)
      Kernel.prepend(Exits.dup.module_eval { private(:exit!) && self })
    end
    private_class_method :install

    install unless Lock.obstacle
  end
end
