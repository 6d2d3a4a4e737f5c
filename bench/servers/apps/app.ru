# frozen_string_literal: true

# A Rack application: /light answers at once, /computing computes for some milliseconds first.
run(lambda do |env|
  count = env["PATH_INFO"] == "/computing" ? 30_000 : 10
  body = (0...count).sum { |number| number * number }.to_s
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
