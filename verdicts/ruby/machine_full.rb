# frozen_string_literal: true

# More threads compute off the lock than there are processors, and take the lock briefly. Load: threads for each processor.
require "etc"
require "zlib"
require_relative "work"

data = Random.new(1).bytes(1 << 16)
run_pool("compressor", Integer(ARGV[0]) * Etc.nprocessors) do
  while goes_on?
    Zlib::Deflate.deflate(data)
    compute(0.00002)
  end
end
