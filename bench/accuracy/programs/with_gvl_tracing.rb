# frozen_string_literal: true

# Records the program with the gem gvl-tracing.

require "gvl-tracing"

output = ENV.fetch("GVL_TRACING_OUTPUT")
# The times in its file count from here on.
File.write("#{output}.begin", Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond))
GvlTracing.start("#{output}.json")
at_exit { GvlTracing.stop }
