# frozen_string_literal: true

# Work beside a thread that waits for the lock.
module WaitingThread
  # Computes with the lock.
  def compute_for(seconds)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline # computes
  end

  # Runs the block in a thread, while another one wants the lock every millisecond.
  def beside_waiter(&body)
    done = false
    waiter = Thread.new { sleep 0.001 until done }
    Thread.new(&body).join
    done = true
    waiter.join
  end
end
