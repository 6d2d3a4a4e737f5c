# frozen_string_literal: true

# Prints how many tokens the lines of an archive of logs have: for each file, and for all of them together.
#
# Usage: ruby log_statistics.rb LOG_OR_FOLDER... [--encoding o200k_base]
#
# The files may be compressed with gzip or Zstandard. They are read on all processors, in bounded memory.

require "offlock/pipeline"
require "optparse"

options = { encoding: "o200k_base" }
paths = OptionParser.new do |parser|
  parser.banner = "Usage: log_statistics.rb LOG_OR_FOLDER... [--encoding NAME]"
  parser.on("--encoding NAME", "the encoding (default: o200k_base)")
end.parse(ARGV, into: options)
abort "Which logs? Give files or folders." if paths.empty?

summary = Offlock::Pipeline.read(*paths, format: :lines, on_error: :report).tokens(options[:encoding]).count

ROW = "%10s %12s %12s  %s"
puts format(ROW, "lines", "bytes", "tokens", "file")
summary.shards.each { |shard| puts format(ROW, shard.documents, shard.bytes, shard.tokens, shard.path) }
puts format(ROW, summary.documents, summary.bytes, summary.tokens, "all")
puts "tokens of a line: half have at most #{summary.percentile(50)}, 99 of 100 at most #{summary.percentile(99)}, " \
     "the longest #{summary.longest}"
summary.failures.each { |failure| warn "left out: #{failure.message}" }
