# frozen_string_literal: true

# Programs that hold the lock for known times on known lines: programs.rb NAME

require "json"
require_relative "witness"

# The programs.
module Programs # rubocop:disable Metrics/ModuleLength -- one subject: programs
  extend Witness
  MS = 1_000_000
  ROUNDS = 25

  class << self
    # Marks a method that is run by its name.
    def self.program(name) = public(name)

    private

    def often(rounds: ROUNDS, pause: 2)
      lambda do
        rounds.times do
          yield
          rest(pause)
        end
      end
    end

    def crunch(milliseconds = 20)
      note(CLock.hold(milliseconds * MS))
    end

    program def one_line
      run(often { crunch })
    end

    program def long_hold
      run(often(rounds: 4) { crunch(300) })
    end

    def outer = middle

    def middle
      note(CLock.hold(3 * MS))
      inner
    end

    def inner
      note(CLock.hold(17 * MS))
    end

    program def nested_calls
      run(often { outer })
    end

    def both
      note(CLock.hold(5 * MS))
      note(CLock.hold(15 * MS))
    end

    program def two_lines
      run(often { both })
    end

    def expression
      note_between(clock, @words.match?(/(zeta)\1/), clock)
    end

    def power
      note_between(clock, @base**900_000, clock)
    end

    def arrange
      note_between(clock, @numbers.sort, clock)
    end

    def substitute
      note_between(clock, @text.gsub("name", "number"), clock)
    end

    program def c_functions
      @base = 7
      @words = "lorem ipsum zeta dolor " * 200_000
      @numbers = Array.new(100_003) { |number| (number * 7919) % 100_003 }
      @text = "a name in a text " * 100_000
      run(*%i[expression power arrange substitute].map { |name| often(rounds: 10) { send(name) } })
    end

    def numbers
      Enumerator.new do |numbers|
        loop do
          note(CLock.hold(20 * MS))
          numbers << 1
        end
      end
    end

    program def generator
      run(lambda do
        numbers = self.numbers
        ROUNDS.times do
          numbers.next
          rest(2)
        end
      end)
    end

    def each
      short = ->(length) { note(CLock.hold(length * MS)) }
      short.call(5)
      rest(2)
      eval("note(CLock.hold(10 * MS))", binding, "(made)", 7) # rubocop:disable Style/EvalWithLocation
      rest(2)
      [8].each { |length| note(CLock.hold(length * MS)) }
    end

    program def lambda_and_eval
      run(often { each })
    end

    def descend(depth)
      if depth.zero?
        note(CLock.hold(20 * MS))
      else
        descend(depth - 1)
      end
    end

    program def recursion
      run(often { descend(90) })
    end

    # Its comparison holds the lock.
    class Key
      include Witness

      def <=>(_other)
        note(CLock.hold(8 * MS))
        0
      end

      define_method(:made) do
        note(CLock.hold(6 * MS))
      end

      def method_missing(*)
        note(CLock.hold(6 * MS))
      end

      def respond_to_missing?(*) = true
    end

    def compare
      [Key.new, Key.new].sort
      Key.new.made
      Key.new.anything
    end

    program def callbacks
      run(often { compare })
    end

    program def fifty_threads
      run(often { crunch(10) }, lights: 50)
    end

    def heavy
      note(CLock.hold(20 * MS))
    end

    def small
      note(CLock.hold(5 * MS))
    end

    program def two_holders
      run(often { heavy }, often { small })
    end

    def first
      ends, times = clock + (1_500 * MS), [clock]
      while (now = clock) < ends
        times << now
        100.times { |number| number + 1 }
      end
      note_loop(times, 4)
    end

    def second
      ends, times = clock + (1_500 * MS), [clock]
      while (now = clock) < ends
        times << now
        100.times { |number| number + 1 }
      end
      note_loop(times, 4)
    end

    def third
      ends, times = clock + (1_500 * MS), [clock]
      while (now = clock) < ends
        times << now
        100.times { |number| number + 1 }
      end
      note_loop(times, 4)
    end

    program def rotating_pool
      run(-> { first }, -> { second }, -> { third })
    end

    def one
      note(CLock.hold(MS / 5))
    end

    def other
      note(CLock.hold(MS / 5))
    end

    program def short_holds
      bodies = [-> { one }, -> { other }] * 4
      run(*bodies.map { |body| often(rounds: 800, pause: 0.1, &body) })
    end
  end
end

Programs.public_send(ARGV.fetch(0))
