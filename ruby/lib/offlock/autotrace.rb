# frozen_string_literal: true

# Starts the trace that `offlock trace` asked for; required through RUBYOPT. A program that cannot be traced runs
# all the same.
begin
  require "offlock"

  Offlock::Lock::Trace.from_environment
  Process.singleton_class.prepend(
    Module.new do
      def _fork
        super.tap { |pid| Offlock::Lock::Trace.from_environment if pid.zero? }
      end
    end
  )
rescue LoadError, SystemCallError => e
  warn "offlock: #{RbConfig.ruby} is not traced: #{e.message}"
end
