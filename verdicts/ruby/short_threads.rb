# frozen_string_literal: true

# A thread for each small job that computes, several at a time. Load: at a time.
require_relative "work"

free = Queue.new
Integer(ARGV[0]).times { free << true }
threads = []
while goes_on?
  free.pop
  threads << Thread.new do
    Thread.current.name = "job #{threads.size}"
    compute(0.003)
    free << true
  end
end
threads.each(&:join)
