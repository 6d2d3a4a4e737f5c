# frozen_string_literal: true

require_relative "lock"
require_relative "version"

module Offlock
  # The interface of gvl-tracing: `GvlTracing = Offlock::GvlTracing` keeps a program working. The file is complete
  # regardless of how the program ends its threads. The trace from which it is made remains beside it, for `offlock
  # report`. With `OFFLOCK_LOCK=off` in the environment nothing is recorded and no file written.
  module GvlTracing
    # The version of offlock, for programs that read this constant.
    VERSION = Offlock::VERSION

    @running = nil

    class << self
      # Starts recording into a file in gvl-tracing's JSON format; with a block, records until the block returns.
      #
      # @param file [String, Pathname]
      # @param os_threads_view_enabled [Boolean] accepted; native threads are always recorded
      # @return [String, nil] with a block, the path of the file
      # @raise [RuntimeError] if it is recording already
      # @raise [SystemCallError] if the file cannot be written
      def start(file, os_threads_view_enabled: false) # rubocop:disable Lint/UnusedMethodArgument
        started = exclusively do
          next if @running&.running?

          @file = file.to_s
          @running = Lock::Trace.new(@file, gvl_tracing: true)
        end
        raise "Already started" unless started
        return unless block_given?

        begin
          yield
        ensure
          path = stop
        end
        path
      end

      # Stops recording and completes the file.
      #
      # @return [String] the path of the file
      # @raise [RuntimeError] if it is not recording
      def stop
        stopped = exclusively do
          running, @running = @running, nil
          @file if running&.stop || running&.off?
        end
        stopped or raise "Tracing not running"
      end

      private

      # May be called in a trap handler.
      def exclusively(&) = Lock.const_get(:Instrumentation).exclusively(nil, &)
    end
  end
end
