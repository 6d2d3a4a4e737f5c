# frozen_string_literal: true

# A Rack application: /hello is light, /report computes.
require "offlock"
require_relative "work"

use Offlock::Lock::Rack
run(lambda do |env|
  compute(env["PATH_INFO"] == "/report" ? 0.04 : 0.0001)
  [200, { "content-type" => "text/plain" }, ["ok"]]
end)
