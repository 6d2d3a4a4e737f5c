# frozen_string_literal: true

module Offlock
  # gvltools' interface: `GVLTools = Offlock::GVLTools` keeps a program working.
  module GVLTools
    # For programs that ask; it is offlock's own.
    VERSION = Offlock::VERSION

    # What gvltools raises.
    class Error < StandardError; end

    # How long one thread has waited for the lock.
    LocalTimer = Lock::LocalTimer
    # How long all threads together have waited for the lock.
    GlobalTimer = Lock::GlobalTimer
    # How many threads wait for the lock at this moment.
    module WaitingThreads
      class << self
        # @return [Integer] the number of threads that wait, or that waited when {disable} was called
        def count = Lock::WaitingThreads.count

        # Starts counting.
        # @return [Boolean] true
        def enable = Lock::WaitingThreads.enable

        # Stops counting.
        # @return [Boolean] true
        def disable = Lock::WaitingThreads.disable

        # @return [Boolean] whether it is being counted
        def enabled? = Lock::WaitingThreads.enabled?

        # @return [Integer] 0
        # @raise [Error] while it is being counted
        def reset
          raise Error, "can't reset WaitingThreads counter while it is active" if enabled?

          Lock::WaitingThreads.reset
        end
      end
    end
  end
end
