# frozen_string_literal: true

# Measures how soon a thread ends that is interrupted while it encodes 100 MB.
#
#   script/ruby bench/region/interrupts.rb [--json FILE]

require_relative "../bench"
require "offlock"

# The time from an interrupt to the end of the thread, for each way to interrupt it.
class Interrupts
  COUNT = 40
  WAYS = {
    "Thread#kill" => :kill.to_proc,
    "Thread#raise" => ->(thread) { thread.raise("stop") }
  }.freeze

  def initialize(text)
    @text = text
    @encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
  end

  def run
    %i[always never].product(WAYS.to_a).map do |release, (name, interrupt)|
      times = Array.new(COUNT) { milliseconds(release, interrupt) }.sort
      { release:, name:, median_ms: Bench.median(times).round(2), max_ms: times.last.round(2) }
    end
  end

  private

  def milliseconds(release, interrupt)
    thread = Thread.new { @encoding.encode(@text, release:) }
    thread.report_on_exception = false
    sleep(0.02 + (rand / 20))
    Bench.seconds do
      interrupt.(thread)
      begin
        thread.join
      rescue RuntimeError
        nil
      end
    end * 1000
  end
end

text = Bench.texts.fetch("prose")
text *= 100_000_000.fdiv(text.bytesize).ceil
results = Interrupts.new(text).run
results.each { |row| puts format("release: %-8s%-14s median %7.2f ms, max %7.2f ms", *row.values) }
Bench.keep(results.map { |row| Bench.row(row[:name], row.slice(:median_ms, :max_ms), "release: #{row[:release]}") })
