# frozen_string_literal: true

# Threads that wait for a mutex of the program, whose holder waits for the network. Load: threads.
require_relative "work"

mutex = Mutex.new
run_pool("client", Integer(ARGV[0])) do
  while goes_on?
    mutex.synchronize { sleep 0.005 }
    compute(0.00002)
  end
end
