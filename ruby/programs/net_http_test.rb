# frozen_string_literal: true

require "net/http"
require_relative "helper"

# Net::HTTP decompresses answers.
class NetHTTPTest < Minitest::Test
  include Programs

  ANSWERS = {
    "/gzip" => -> { ["gzip", Zlib.gzip(TEXT)] },
    "/deflate" => -> { ["deflate", Zlib.deflate(TEXT)] },
    "/damaged" => -> { ["gzip", Zlib.gzip(TEXT).tap { |bytes| bytes[20] = "\xFF".b }] }
  }.freeze

  def get(path)
    serving(->(asked) { ANSWERS.fetch(asked).call }) { |port| yield Net::HTTP.get_response("127.0.0.1", path, port) }
  end

  def test_answers_are_unpacked
    %w[/gzip /deflate].each do |path|
      get(path) do |response|
        assert_equal TEXT, response.body
        assert_nil response["content-encoding"]
      end
    end
  end

  def test_an_answer_is_unpacked_piece_by_piece
    pieces = []
    serving(->(_) { ["gzip", Zlib.gzip(TEXT)] }) do |port|
      Net::HTTP.start("127.0.0.1", port) do |http|
        http.request_get("/") { |response| response.read_body { |piece| pieces << piece } }
      end
    end
    assert_equal TEXT, pieces.join
  end

  def test_a_damaged_answer_is_an_error_of_zlib
    assert_raises(Zlib::Error) { get("/damaged", &:body) }
  end
end
