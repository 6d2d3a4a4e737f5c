# frozen_string_literal: true

# A pool whose threads compute all the time. Load: threads.
require_relative "work"

run_pool("worker", Integer(ARGV[0])) { compute(0.02) while goes_on? }
