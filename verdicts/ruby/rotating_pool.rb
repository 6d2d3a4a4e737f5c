# frozen_string_literal: true

# A pool whose members compute in turn, one at a time, so that none has half of the lock; a light thread beside it.
# Load: members.
require_relative "work"

light = lambda do
  while goes_on?
    sleep 0.002
    compute(0.00005)
  end
end
turns = Array.new(Integer(ARGV[0])) { Queue.new }
members = turns.each_index.to_h do |number|
  following = turns[(number + 1) % turns.size]
  member = lambda do
    while goes_on?
      turns[number].pop
      compute(0.02)
      following << true
    end
    following << true
  end
  ["member #{number}", member]
end
turns.first << true
run({ "light" => light, **members })
