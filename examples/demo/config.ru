# frozen_string_literal: true

# A web application (Rack): pages made of compressed fragments, and reports that a thread computes.
#
# The demo serves it twice: as it is, and with offlock's Zlib in place of Ruby's.

require "offlock"
require "zlib"

# As a cache keeps them: Rails compresses what has more than 1 KB.
FRAGMENTS = Array.new(10) { |number| Zlib.deflate("<li>item #{number}</li>\n" * 80).freeze }.freeze

# Unpacks and joins the fragments of a page. Ruby's Zlib releases the lock for each of them, and another thread takes it.
def page = FRAGMENTS.map { |fragment| Zlib.inflate(fragment) }.join

# The reports that are asked for: a queue for each, for its text.
REPORTS = Queue.new

# Adds up numbers for some 150 ms, all of it with the lock.
def compute_report = "#{(1..4_000_000).sum { |number| number % 7 }}\n"

# One report after the other, as the worker of a job queue in the server's process makes them.
Thread.new { loop { REPORTS.pop << compute_report } }.name = "reports"

def report = Queue.new.tap { |text| REPORTS << text }.pop

use Offlock::Lock::Rack

run lambda { |env|
  [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] == "/report" ? report : page]]
}
