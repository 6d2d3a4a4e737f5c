# frozen_string_literal: true

require "delegate"

module Offlock
  module Lock
    # Rack middleware that marks each request, so that a trace's summary can name the endpoint that holds the lock. For
    # servers with a thread per request, such as Puma:
    #
    #   use Offlock::Lock::Rack                                       # config.ru, Sinatra
    #   config.middleware.insert_before 0, Offlock::Lock::Rack        # Rails
    #
    # A mark has the method and the route, `GET /users/:id`, if the framework tells the route (Rails from 7.1 on, Sinatra),
    # otherwise the path with `*` in place of numbers and long identifiers, `GET /users/*`. From the hundredth name on, new
    # ones are `GET (other)`. A mark lasts until the server has written the answer. Costs a few microseconds per request
    # while no trace is running.
    class Rack
      MOST_NAMES = 100
      METHODS = %w[GET HEAD POST PUT PATCH DELETE OPTIONS].freeze
      VARIABLE = %r{(?<=/)(?:\d+|(?=[^/]*\d)\h[\h-]{7,}|[^/]{41,})(?=/|\z)}

      private_constant :MOST_NAMES, :METHODS, :VARIABLE

      # @param app [#call] the application
      def initialize(app)
        @app = app
        @names = {}
        @changing = Mutex.new
      end

      # @param env [Hash] the request
      # @return [Array] the application's answer
      def call(env)
        Native.mark_begin(env["REQUEST_METHOD"])
        is_open = true
        status, headers, body = @app.call(env)
        is_open = false if lazy?(body)
        [status, headers, is_open ? body : Body.new(body) { Native.mark_end(name(env)) }]
      ensure
        Native.mark_end(name(env)) if is_open
      end

      private

      # Whether the answer is made while the server iterates over it.
      def lazy?(body) = body.respond_to?(:each) && !body.respond_to?(:to_ary) && !body.respond_to?(:to_path)

      # A bounded number of names: paths come from clients.
      def name(env)
        method = env["REQUEST_METHOD"]
        name = "#{method} #{route(env) || path(env)}"
        @changing.synchronize do
          next name if @names.key?(name) || @names.size < MOST_NAMES && (@names[name] = true)

          METHODS.include?(method) ? "#{method} (other)" : "(other)"
        end
      end

      def route(env)
        env["action_dispatch.route_uri_pattern"]&.delete_suffix("(.:format)") ||
          env["sinatra.route"]&.sub(/\A[A-Z]+ /, "")
      end

      def path(env) = "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}".gsub(VARIABLE, "*")

      # An answer that ends the mark when the server closes it.
      class Body < SimpleDelegator
        def initialize(body, &ended)
          super(body)
          @ended = ended
        end

        # Closes the answer. The mark ends once, even if the server closes twice.
        def close
          __getobj__.close if __getobj__.respond_to?(:close)
        ensure
          ended, @ended = @ended, nil
          ended&.call
        end
      end
      private_constant :Body
    end
  end
end
