# frozen_string_literal: true

# A program whose threads wait for something that does not come. Load: threads.
require_relative "work"

never = Queue.new
run_pool("listener", Integer(ARGV[0])) { never.pop(timeout: Work::SECONDS) }
