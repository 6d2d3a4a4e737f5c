# frozen_string_literal: true

# A pool of workers that take jobs from a queue, as Sidekiq does: mails wait for the network, reports compute.
# Load: reports in ten jobs.
require "offlock"
require_relative "work"

build_report = -> { Offlock::Lock.mark("BuildReport") { compute(0.03) } }
send_mail = lambda do
  Offlock::Lock.mark("SendMail") do
    4.times do
      sleep 0.002
      compute(0.0001)
    end
  end
end

reports = Integer(ARGV[0])
workers = (0...6).to_h do |number|
  worker = lambda do
    (number..).step(3) do |at|
      break unless goes_on?

      (at % 10 < reports ? build_report : send_mail).call
    end
  end
  ["sidekiq.default/processor #{number}", worker]
end
run(workers)
