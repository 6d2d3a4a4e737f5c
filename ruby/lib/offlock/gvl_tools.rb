# frozen_string_literal: true

module Offlock
  # gvltools' interface: `GVLTools = Offlock::GVLTools` keeps a program working.
  module GVLTools
    # How long one thread has waited for the lock.
    LocalTimer = Lock::LocalTimer
    # How long all threads together have waited for the lock.
    GlobalTimer = Lock::GlobalTimer
    # How many threads wait for the lock at this moment.
    WaitingThreads = Lock::WaitingThreads
  end
end
