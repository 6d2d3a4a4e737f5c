# frozen_string_literal: true

# A script of some milliseconds, with threads. Load: threads.
require_relative "work"

run_pool("worker", Integer(ARGV[0])) { compute(0.001) }
