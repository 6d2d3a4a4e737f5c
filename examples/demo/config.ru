# frozen_string_literal: true

# A web application (Rack): pages made of compressed fragments, and a report that computes.
#
# The demo serves it twice: as it is, and with offlock's Zlib in place of Ruby's.

require "offlock"
require "zlib"

FRAGMENTS = Array.new(20) { |number| Zlib.deflate("<li>item #{number}</li>\n" * 40).freeze }.freeze

# Unpacks and joins the fragments of a page. Ruby's Zlib releases the lock for each of them, and another thread takes it.
def page = FRAGMENTS.map { |fragment| Zlib.inflate(fragment) }.join

# Adds up numbers for a quarter of a second or so, all of it with the lock.
def report = "#{(1..4_000_000).sum { |number| number % 7 }}\n"

use Offlock::Lock::Rack

run lambda { |env|
  [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] == "/report" ? report : page]]
}
