# frozen_string_literal: true

# A pool whose threads wait for other machines, and compute next to nothing. Load: threads.
require_relative "work"

run_pool("fetcher", Integer(ARGV[0])) do
  while goes_on?
    sleep 0.02
    compute(0.00002)
  end
end
