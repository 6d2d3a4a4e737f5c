# frozen_string_literal: true

require "rack"
require "rack/mock_request"
require_relative "helper"

# Rack::Deflater compresses answers.
class RackTest < Minitest::Test
  include Programs

  def get(app, **options)
    Rack::MockRequest.new(Rack::Deflater.new(Rack::Lint.new(app), **options)).get("/", "HTTP_ACCEPT_ENCODING" => "gzip")
  end

  def test_an_answer_is_packed
    app = ->(_) { [200, { "content-type" => "text/plain", "last-modified" => "Sat, 01 Jan 2000 00:00:00 GMT" }, [TEXT]] }
    answer = get(app)
    assert_equal "gzip", answer["content-encoding"]
    assert_equal TEXT, Zlib.gunzip(answer.body)
    assert_operator answer.body.bytesize, :<, TEXT.bytesize / 10
    assert_equal Time.utc(2000), Zlib::GzipReader.new(StringIO.new(answer.body)).mtime
  end

  def test_a_stream_is_packed_piece_by_piece
    [true, false].each do |sync|
      answer = get(->(_) { [200, { "content-type" => "text/plain" }, %w[one two three].each] }, sync: sync)
      assert_equal "onetwothree", Zlib.gunzip(answer.body)
    end
  end
end
