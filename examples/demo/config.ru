# frozen_string_literal: true

# A web application (Rack): quick requests, and a report that reads many compressed texts.
#
# The demo serves it twice: as it is, and with offlock's Zlib in place of Ruby's.

require "offlock"
require "zlib"

# A table's texts, each of which is stored compressed.
CHANCE = Random.new(1)
ROWS = Array.new(5_000) { Zlib.deflate(Array.new(150) { CHANCE.rand(100_000).to_s }.join(" ")).freeze }.freeze

# Adds up the sizes of all texts.
def report
  "#{ROWS.sum { |row| Zlib.inflate(row).bytesize }} bytes\n"
end

use Offlock::Lock::Rack

run lambda { |env|
  [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] == "/report" ? report : "hello\n"]]
}
