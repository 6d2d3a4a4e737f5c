# frozen_string_literal: true

require "zlib"
require_relative "../ruby/test/support/ractor"
require_relative "results"

# Texts and fair timing for the Ruby benchmarks.
module Bench
  module_function

  DATA = ENV.fetch("OFFLOCK_DATA") { File.join(ROOT, ".cache/corpora") }

  # Returns real text by kind, 5 MB each, from the folder OFFLOCK_DATA or .cache/corpora.
  def texts
    %w[prose code multi].to_h do |kind|
      [kind, Zlib::GzipReader.open(File.join(DATA, "#{kind}.txt.gz"), &:read).force_encoding("UTF-8").scrub]
    end
  rescue Errno::ENOENT => e
    abort "#{e.message}: run script/corpora .cache/corpora, or set OFFLOCK_DATA"
  end

  # Cuts a text into documents of 1 to 20 KB. The Strings share no bytes.
  def documents(text, seed: 42)
    random = Random.new(seed)
    documents = []
    at = 0
    while at < text.bytesize
      document = text.byteslice(at, random.rand(1_000..20_000)).scrub("")
      at += document.bytesize
      at += 1 until at >= text.bytesize || text.byteslice(at, 1).getbyte(0) & 0xC0 != 0x80
      documents << document.dup.freeze
    end
    documents
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def seconds
    start = clock
    yield
    clock - start
  end

  def median(values)
    values.sort[values.size / 2]
  end

  # Runs the contestants in turn and returns their times by name. Each runs once in a round, in another order every round,
  # so that none always follows the same one. With `warm` each does the work of another round first, which is not timed.
  def alternate(contestants, rounds, warm: false)
    times = contestants.to_h { |name, _| [name, []] }
    rounds.times do |round|
      contestants.to_a.shuffle(random: Random.new(round)).each do |name, contestant|
        contestant.((round - 1) % rounds) if warm
        GC.start
        times[name] << seconds { contestant.(round) }
      end
    end
    times
  end

  # Divides a contestant's work among processes. They share nothing but the machine, so their gain over one process is the
  # upper limit for threads.
  class Processes
    # The block takes the round and the number of the process.
    def initialize(count, &work)
      @workers = Array.new(count) { |number| IO.popen("-", "r+") || serve(number, work) }
    end

    def call(round)
      @workers.each { |worker| worker.puts(round) }
      abort "a process of the benchmark has ended" unless @workers.map(&:gets).all?
    end

    private

    # Runs in the child: one round for each line, until the parent has ended.
    def serve(number, work)
      $stdout.sync = true
      while (line = $stdin.gets)
        work.(Integer(line), number)
        $stdout.puts
      end
      exit!
    end
  end

  # Repeats the block until it has run while other programs used little processor time, at most +tries+ times, and returns
  # the value of the last run.
  def undisturbed(tries: 4)
    loop do
      others = -cpu_of_others
      start = clock
      result = yield
      return result if (tries -= 1).zero? || others + cpu_of_others < 0.1 * (clock - start)

      sleep 0.1
    end
  end

  # Returns the processor time in seconds that other programs have used since the machine was started; 0 if unknown.
  def cpu_of_others
    user, nice, system, _idle, _wait, *interrupts = File.foreach("/proc/stat").first.split.drop(1).map(&:to_i)
    ((user + nice + system + interrupts.first(3).sum) / 100.0) - Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  rescue Errno::ENOENT
    0
  end
end
