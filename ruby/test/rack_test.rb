# frozen_string_literal: true

require "test_helper"

# Requests to Rack applications are marked.
class RackTest < Minitest::Test
  def marks(&program)
    Offlock::Lock.measure(&program).to_h[:marks].to_h { |mark| [mark[:name], mark[:count]] }
  end

  # What a server does with a request. Returns the parts of the answer.
  def get(app, path, **env)
    *, body = app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, **env.transform_keys(&:to_s) })
    body.each.to_a
  ensure
    body.close if body.respond_to?(:close)
  end

  def app(&body) = Offlock::Lock::Rack.new(->(env) { [200, {}, body ? body.call(env) : []] })

  def test_a_request_is_marked
    hello = app { ["hello"] }
    assert_equal ["hello"], get(hello, "/hello")
    assert_equal({ "GET /hello" => 2, "GET /" => 1 }, marks { 2.times { get(hello, "/hello") } && get(hello, "/") })
  end

  def test_what_varies_in_a_path_is_left_out
    { "/users/17" => "/users/*",
      "/users/17/posts/4" => "/users/*/posts/*",
      "/v1/f81d4fae-7dec-11d0-a765-00a0c91e6bf6" => "/v1/*",
      "/a/#{"x" * 41}" => "/a/*",
      "/v2/decade/feedface" => "/v2/decade/feedface",
      "/report.csv" => "/report.csv" }.each do |path, name|
      assert_equal({ "GET #{name}" => 1 }, marks { get(app, path) })
    end
  end

  def test_the_frameworks_route_is_the_name
    rails = { "action_dispatch.route_uri_pattern": "/users/:id(.:format)" }
    sinatra = { "sinatra.route": "GET /posts/:id" }
    routes = { "GET /users/:id" => 1, "GET /posts/:id" => 1 }
    assert_equal(routes, marks { [rails, sinatra].each { |env| get(app, "/any", **env) } })
  end

  def test_clients_cannot_make_endless_names
    names = marks do
      one = app
      150.times { |number| get(one, "/page-#{number}") }
      get(one, "/page", REQUEST_METHOD: "ODD")
    end
    assert_equal [50, 1], ["GET (other)", "(other)"].map { |name| names.delete(name) }
    assert_equal 100, names.size
  end

  def test_a_mark_lasts_until_a_lazy_answer_is_closed
    lazy = app { Enumerator.new { |parts| Offlock::Lock.mark("inner") { parts << "a" << "b" } } }
    summary = Offlock::Lock.measure do
      assert_equal %w[a b], get(lazy, "/lazy")
      Offlock::Lock.mark("afterwards") { nil }
    end
    totals = summary.to_h[:marks].to_h { |mark| [mark[:name], mark[:total]] }
    assert_equal ["GET /lazy", "afterwards", "inner"], totals.keys.sort
    assert_operator totals["GET /lazy"], :>=, totals["inner"]
  end

  def test_an_error_ends_the_mark
    broken = app { raise ArgumentError, "broken" }
    assert_equal({ "GET /broken" => 1 }, marks { assert_raises(ArgumentError) { get(broken, "/broken") } })
  end

  def test_a_file_stays_a_file
    file = Struct.new(:to_path).new("/etc/hosts")
    def file.each = yield("hosts")
    *, body = app { file }.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" })
    assert_same file, body
  end
end
