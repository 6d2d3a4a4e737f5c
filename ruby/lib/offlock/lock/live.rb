# frozen_string_literal: true

module Offlock
  module Lock
    # Publishes a process for `offlock record`: {Lock.publish}. A forked child is published as well.
    # @private
    class Live < Trace
      # @param stacks [Numeric, nil] see {Trace#initialize}; of a recording, `offlock record` says when they are taken
      def initialize(stacks)
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

    # The process's own, while it is published.
    @live = nil

    class << self
      # Publishes this process, so that `offlock record` can take traces from it while it runs, without root. So does
      # `OFFLOCK_LIVE=1` in the environment. Nothing is recorded until the command connects. The socket lies in a
      # folder that only this user can enter, and forked children get one of their own.
      #
      # @param stacks [Numeric, nil] whether traces have stacks: nil for none. `offlock record --stacks` says from which
      #   wait on.
      # @return [Boolean] true if it published the process; false if it is published already, or with
      #   `OFFLOCK_LOCK=off` in the environment
      # @raise [SystemCallError, IOError] if the socket cannot be made
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def publish(stacks: Trace::STACKS)
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
          next false if @live&.running?

          @live = Live.new(stacks)
          @live.running?
        end
      end

      # Ends the recordings of `offlock record`, and allows no more.
      #
      # @return [Boolean] whether the process was published
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def unpublish
        Instrumentation.check_ractor
        Instrumentation.exclusively(false) do
          live, @live = @live, nil
          was_published = live&.running? || false
          live&.stop
          was_published
        end
      end

      # Publishes the process if the environment asks for it. A process that cannot be published goes on.
      # @private
      def publish_if_requested
        publish if Native.live_requested?
      rescue SystemCallError, IOError => e
        warn "offlock: process #{Process.pid} is not published: #{e.message}"
      end
    end
  end
end
