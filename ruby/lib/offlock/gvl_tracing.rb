# frozen_string_literal: true

module Offlock
  # gvl-tracing's interface: `GvlTracing = Offlock::GvlTracing` keeps a program working. The file is complete however
  # the program ends its threads; the trace it is made from stays beside it, for `offlock report`.
  module GvlTracing
    # For programs that ask; it is offlock's own.
    VERSION = Offlock::VERSION

    @running = nil

    class << self
      # Starts to record into a file in gvl-tracing's JSON format; with a block, until it returns.
      #
      # @param file [String, Pathname]
      # @param os_threads_view_enabled [Boolean] accepted; native threads are always recorded
      # @return [String] the file, with a block
      # @raise [RuntimeError] when it is recording already
      # @raise [SystemCallError] the file cannot be written
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
      # @return [String] the file
      # @raise [RuntimeError] when nothing is recording
      def stop
        stopped = exclusively do
          running, @running = @running, nil
          running&.stop && @file
        end
        stopped or raise "Tracing not running"
      end

      private

      # May be called in a trap handler.
      def exclusively(&) = Lock.const_get(:Instrumentation).exclusively(nil, &)
    end
  end
end
