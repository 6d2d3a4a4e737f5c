# frozen_string_literal: true

# The C extension of nio4r is not built here.
ENV["NIO4R_PURE"] = "true"

require "net/http"
require "rack"
require "puma"
require "puma/server"
require_relative "helper"

# Puma serves compressed answers to several clients at once.
class PumaTest < Minitest::Test
  include Programs

  APP = Rack::Deflater.new(->(env) { [200, { "content-type" => "text/plain" }, [TEXT, env["PATH_INFO"]]] })

  def serving_puma
    server = Puma::Server.new(APP, Puma::Events.strings, min_threads: 1, max_threads: 4)
    port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
    server.run
    yield port
  ensure
    server&.stop(true)
  end

  def test_clients_get_packed_answers
    serving_puma do |port|
      clients = Array.new(4) do |client|
        Thread.new do
          Net::HTTP.start("127.0.0.1", port) do |http|
            Array.new(10) { |number| http.get("/#{client}/#{number}", "Accept-Encoding" => "gzip") }
          end
        end
      end
      clients.each_with_index do |thread, client|
        thread.value.each_with_index do |answer, number|
          assert_equal "gzip", answer["content-encoding"]
          assert_equal "#{TEXT}/#{client}/#{number}", Zlib.gunzip(answer.body)
        end
      end
    end
  end
end
