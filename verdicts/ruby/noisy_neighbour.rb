# frozen_string_literal: true

# One thread computes; others need the lock briefly and often. Load: the others.
require_relative "work"

indexer = -> { compute(0.05) while goes_on? }
web = lambda do
  while goes_on?
    sleep 0.001
    compute(0.0001)
  end
end
run({ "indexer" => indexer, **(1..Integer(ARGV[0])).to_h { |number| ["web #{number}", web] } })
