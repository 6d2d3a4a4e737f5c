# frozen_string_literal: true

require "zlib"
require_relative "../ruby/test/support/ractor"
require_relative "results"

# What the Ruby benchmarks share: texts and fair timing; results.rb keeps the results.
module Bench
  module_function

  DATA = ENV.fetch("OFFLOCK_DATA") { File.join(ROOT, ".cache/corpora") }

  # Real text by kind, five megabytes each, from the folder OFFLOCK_DATA or .cache/corpora.
  def texts
    %w[prose code multi].to_h do |kind|
      [kind, Zlib::GzipReader.open(File.join(DATA, "#{kind}.txt.gz"), &:read).force_encoding("UTF-8").scrub]
    end
  rescue Errno::ENOENT => e
    abort "#{e.message}: run script/corpora .cache/corpora, or set OFFLOCK_DATA"
  end

  # A text cut into documents of 1 to 20 KB, as programs meet them: each a String of its own.
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

  # Runs the contestants in turn, each once a round, in another order every time, so that none always comes after the
  # same one; returns the times by name. With `warm` each does the work of another round first, which is not timed.
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

  # So many processes that do a contestant's work together, each its share. They have nothing in common but the machine: what
  # two of them gain over one is what it has to give to two threads.
  class Processes
    # The block is given the round, and the number of the process.
    def initialize(count, &work)
      @workers = Array.new(count) { |number| IO.popen("-", "r+") || serve(number, work) }
    end

    def call(round)
      @workers.each { |worker| worker.puts(round) }
      abort "a process of the benchmark has ended" unless @workers.map(&:gets).all?
    end

    private

    # In the child: a round for each line, until the parent has ended.
    def serve(number, work)
      $stdout.sync = true
      while (line = $stdin.gets)
        work.(Integer(line), number)
        $stdout.puts
      end
      exit!
    end
  end

  # What the block gives in a run during which other programs left the machine alone; after some tries, in any run.
  def undisturbed(tries: 4)
    loop do
      others = -cpu_of_others
      start = clock
      result = yield
      return result if (tries -= 1).zero? || others + cpu_of_others < 0.1 * (clock - start)

      sleep 0.1
    end
  end

  # Seconds of processor time that other programs have used since the machine was started; 0 where that is not known.
  def cpu_of_others
    user, nice, system, _idle, _wait, *interrupts = File.foreach("/proc/stat").first.split.drop(1).map(&:to_i)
    ((user + nice + system + interrupts.first(3).sum) / 100.0) - Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  rescue Errno::ENOENT
    0
  end
end
