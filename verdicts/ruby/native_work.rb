# frozen_string_literal: true

# Threads that compress with the standard library, which releases the lock. Load: threads.
require "zlib"
require_relative "work"

data = Random.new(1).bytes(1 << 20)
run_pool("compressor", Integer(ARGV[0])) { Zlib::Deflate.deflate(data) while goes_on? }
