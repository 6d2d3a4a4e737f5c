# frozen_string_literal: true

module Offlock
  module Lock
    # Publishes a process for `offlock record`: {Lock.publish}. A forked child is published as well.
    # @private
    class Live < Trace
      # @param stacks [Numeric, nil] see {Trace#initialize}; of a recording, `offlock record` says when they are taken
      def initialize(stacks) # rubocop:disable Lint/MissingSuper -- it records nothing by itself
        Instrumentation.check_ractor
        @about = Instrumentation.about(false)
        @stacks = stacks&.to_f
        start
        Forks.add(self) if running?
      end

      # Starts the live traces of a forked child.
      def start_again
        start
      rescue SystemCallError, IOError => e
        warn "offlock: process #{Process.pid} is not published: #{e.message}"
      end

      # Ends the recordings of connected clients, and takes no more.
      def stop
        Forks.remove(self)
        super
        nil
      end

      private

      def start
        record { Native::Recorder.publish(@about, Instrumentation.threads, Ractor.current, @stacks) }
      end
    end
    private_constant :Live
  end
end
