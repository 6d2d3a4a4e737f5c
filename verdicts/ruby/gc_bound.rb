# frozen_string_literal: true

# Threads that make many objects beside many live ones, so that collections take much of the time. Load: threads.
require_relative "work"

ALIVE = Array.new(300_000) { |number| [number.to_s] }
allocate = lambda do
  while goes_on?
    2_000.times { Array.new(10) }
    GC.start
  end
end
threads = Integer(ARGV[0])
threads == 1 ? allocate.call : run_pool("allocator", threads, &allocate)
