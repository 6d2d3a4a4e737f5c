# frozen_string_literal: true

# Compares Offlock::Strings with the methods of String: script/ruby bench/strings/ruby_bench.rb [--json result.json]
#
# The texts are Moby Dick, and Moby Dick with 20 lines joined to one each. They are split in 1 and 4 threads.

require "objspace"
require_relative "../bench"

FILE = Dir[File.join(Bench::DATA, "{mobydick,lines}.txt")].max
TEXT = File.read(FILE, encoding: "UTF-8").freeze
LONG = TEXT.lines.each_slice(20).map { |lines| "#{lines.join.tr("\n", " ")}\n" }.join.freeze
TEXTS = { "lines" => TEXT, "long lines" => LONG }.freeze

def contestants(text)
  {
    "String#lines" => -> { text.lines(chomp: true) },
    "offlock" => -> { Offlock::Strings.lines(text, chomp: true) },
    "String#split" => -> { text.split("\n", -1) },
    "offlock, split" => -> { Offlock::Strings.split(text, "\n") }
  }
end

# Returns the bytes that a substring takes on average, without those of the text.
def bytes_each(pieces)
  pieces.sum { |piece| ObjectSpace.memsize_of(piece) }.fdiv(pieces.size).round(1)
end

def in_threads(count, calls, call)
  Array.new(count) { Thread.new { (calls / count).times { call.() } } }.each(&:join)
end

def compare(text, threads)
  calls = contestants(text)
  raise "different answers" unless calls.values.each_slice(2).all? { |ours, theirs| ours.() == theirs.() }

  rounds = calls.transform_values { |call| ->(_) { in_threads(threads, 60, call) } }
  times = Bench.alternate(rounds, 9).transform_values { |seconds| Bench.median(seconds) / 60 }
  times.to_h do |name, seconds|
    peer = name.include?("split") ? "String#split" : "String#lines"
    row = { ms: (seconds * 1e3).round(3), ratio: (times[peer] / seconds).round(2), bytes_each: bytes_each(calls[name].()) }
    puts format("  %-16s %7.3f ms  x%.2f  %6.1f bytes each", name, *row.values)
    [name, row]
  end
end

results = TEXTS.to_a.product([1, 4]).to_h do |(name, text), threads|
  title = "#{name}, #{threads} thread#{"s" if threads > 1}"
  puts title
  [title, compare(text, threads)]
end
Bench.keep(Bench.by_contestant(results))
