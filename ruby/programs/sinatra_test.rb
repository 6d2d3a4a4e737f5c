# frozen_string_literal: true

require "sinatra/base"
require "rack/mock_request"
require_relative "helper"

# A Sinatra app that compresses its answers and reads compressed uploads.
class SinatraTest < Minitest::Test
  # The app.
  class App < Sinatra::Base
    set :environment, :production
    set :host_authorization, {}
    use Rack::Deflater

    get("/") { Programs::TEXT }
    post("/") { Zlib::GzipReader.wrap(request.body, &:read).length.to_s }
    error(Zlib::Error) { halt 400, "no gzip" }
  end

  def upload(body)
    Rack::MockRequest.new(App).post("/", input: body, "CONTENT_TYPE" => "application/gzip", "HTTP_HOST" => "localhost")
  end

  def test_an_answer_is_packed
    answer = Rack::MockRequest.new(App).get("/", "HTTP_ACCEPT_ENCODING" => "gzip", "HTTP_HOST" => "localhost")
    assert_equal [200, "gzip", Programs::TEXT], [answer.status, answer["content-encoding"], Zlib.gunzip(answer.body)]
  end

  def test_an_upload_is_unpacked
    answer = upload(Zlib.gzip(Programs::TEXT))
    assert_equal Programs::TEXT.length.to_s, answer.body
  end

  def test_an_upload_that_is_not_gzip_is_refused
    answer = upload("plain text, not packed")
    assert_equal [400, "no gzip"], [answer.status, answer.body]
  end
end
