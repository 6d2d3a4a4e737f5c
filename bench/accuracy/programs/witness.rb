# frozen_string_literal: true

require "json"
require ENV.fetch("ACCURACY_LIBRARY")

# What a program does with the lock, noted by itself with the monotonic clock: no tool takes part.
module Witness
  # Between two steps of a loop that take this long, in nanoseconds, the loop may have lost the lock.
  GAP = 2_000_000

  Notes = Struct.new(:holds, :waits, :gaps, :others, :loops, :acquired)
  ALL = [] # rubocop:disable Style/MutableConstant -- the notes of each thread

  module_function

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def notes
    Thread.current.thread_variable_get(:notes) || Notes.new([], [], [], [], [], clock).tap do |notes|
      ALL << notes
      Thread.current.thread_variable_set(:notes, notes)
    end
  end

  # Notes that the caller's line held the lock between these times.
  def note(times)
    add(*times, caller_locations(1, 1).first)
  end

  # The same, where the times are taken around the call.
  def note_between(begins, _, ends)
    add(begins, ends, caller_locations(1, 1).first)
  end

  # Notes that a loop of the caller's, which ends so many lines before, held the lock at these times.
  def note_loop(times, lines)
    at = caller_locations(1, 1).first
    notes.loops << [times, at.label, at.path, at.lineno - lines, at.lineno - 1]
  end

  # Cuts loops where they may have lost the lock. It takes time, so it is done when the program is.
  def cut_loops(notes)
    notes.loops.each do |times, *where|
      stretches = times.slice_when { |before, after| after - before > GAP }.map(&:minmax)
      notes.holds.concat(stretches.map { |stretch| [*stretch, *where] })
      notes.gaps.concat(stretches.each_cons(2).map { |(_, ends), (begins, _)| [ends, begins, *where] })
    end
  end

  def add(begins, ends, at)
    notes.holds << [begins, ends, at.label, at.path, at.lineno, at.lineno]
  end

  # Lets go of the lock for so many milliseconds, and notes the wait for it that follows.
  def rest(milliseconds)
    own = notes
    own.others << [own.acquired, clock]
    woke = CLock.rest((milliseconds * 1e6).round)
    own.acquired = clock
    own.waits << [woke, own.acquired]
  end

  # Runs each body in a thread, beside threads that want the lock every millisecond.
  def run(*bodies, lights: 2)
    @working = bodies.size
    begins = clock
    threads = bodies.map { |body| Thread.new { work(body) } }
    threads += Array.new(lights) { Thread.new { rest(1) while @working.positive? } }
    rest(5) while @working.positive?
    elapsed = clock - begins
    threads.each(&:join)
    ALL.each { |notes| cut_loops(notes) }
    threads = ALL.map { |notes| notes.to_h.slice(:holds, :waits, :gaps, :others) }
    File.write(ENV.fetch("ACCURACY_NOTES"), JSON.generate({ elapsed:, threads: }))
  end

  def work(body)
    rest(20)
    body.call
    rest(0)
    @working -= 1
  end
end
