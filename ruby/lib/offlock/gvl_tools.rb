# frozen_string_literal: true

require_relative "lock"
require_relative "version"

module Offlock
  # The interface of the gem gvltools: `GVLTools = Offlock::GVLTools` keeps a program working.
  module GVLTools
    # The version of offlock, not of gvltools.
    VERSION = Offlock::VERSION

    # The class of gvltools' exceptions.
    class Error < StandardError; end

    # The time that one thread has waited for the lock.
    LocalTimer = Lock::LocalTimer
    # The time that all threads together have waited for the lock.
    GlobalTimer = Lock::GlobalTimer
    # The number of threads that wait for the lock at this moment.
    module WaitingThreads
      class << self
        # @return [Integer] the number of threads that wait, or that waited when {disable} was called
        def count = Lock::WaitingThreads.count

        # Starts counting.
        # @return [Boolean] whether it counts: true, or false with `OFFLOCK_LOCK=off` in the environment
        def enable = Lock::WaitingThreads.enable

        # Stops counting.
        # @return [Boolean] true
        def disable = Lock::WaitingThreads.disable

        # @return [Boolean] whether counting is on
        def enabled? = Lock::WaitingThreads.enabled?

        # Sets the number back to zero.
        # @return [Integer] 0
        # @raise [Error] while counting is on
        def reset
          raise Error, "can't reset WaitingThreads counter while it is active" if enabled?

          Lock::WaitingThreads.reset
        end
      end
    end
  end
end
