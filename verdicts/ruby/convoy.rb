# frozen_string_literal: true

# Pairs of threads that hand a token to and fro: the lock is handed over all the time. Load: pairs.
require_relative "work"

pairs = Array.new(Integer(ARGV[0])) { [Queue.new, Queue.new] }
players = pairs.flat_map { |here, there| [[here, there], [there, here]] }
bodies = players.each_with_index.to_h do |(from, to), number|
  player = lambda do
    to << true while from.pop && goes_on?
    to << true
  end
  ["player #{number}", player]
end
pairs.each { |here, _| here << true }
run(bodies)
