# frozen_string_literal: true

# Threads that work in offlock's operations. Load: threads.
require "offlock"
require_relative "work"

data = Random.new(1).bytes(1 << 16) * 64
run_pool("packer", Integer(ARGV[0])) { Offlock::Zlib.deflate(data) while goes_on? }
