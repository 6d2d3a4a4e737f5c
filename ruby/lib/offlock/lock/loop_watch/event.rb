# frozen_string_literal: true

module Offlock
  module Lock
    # Why an event loop was late. The five parts, in nanoseconds, add up to `nanoseconds`. The names are those of Python's
    # `offlock.lock.LateEvent`.
    #
    # @!attribute [r] kind
    #   @return [String] what was late: "callback", a fiber ran for long without yielding; "iteration", one round of the loop
    #     took long, in fibers of which none did; "wakeup", the loop itself did not run although it could have
    # @!attribute [r] cause
    #   @return [String] the largest of the parts: "computed", "blocked", "gc", "lock" or "not_run"
    # @!attribute [r] nanoseconds
    #   @return [Integer] how long the fiber or the round took, or for how long the loop was kept from running
    # @!attribute [r] computed_ns
    #   @return [Integer] processor time of the loop's thread, without garbage collection
    # @!attribute [r] blocked_ns
    #   @return [Integer] a fiber waited in a call that the scheduler does not see, such as `File#flock`, a function in C
    #     that blocks, or `Fiber.blocking { sleep }`
    # @!attribute [r] gc_ns
    #   @return [Integer] garbage collection in the loop's thread
    # @!attribute [r] lock_ns
    #   @return [Integer] waiting for Ruby's lock
    # @!attribute [r] not_run_ns
    #   @return [Integer] the system did not run the thread, though it could have run: too few processors, or a stopped process
    # @!attribute [r] thread
    #   @return [String] the name of the loop's thread
    # @!attribute [r] function
    #   @return [String] the outermost function of the fiber that is not the scheduler's; empty if it is unknown
    # @!attribute [r] file
    #   @return [String] where that is; of an unknown function, where the fiber's block is
    # @!attribute [r] line
    #   @return [Integer] the line that was executed, or that of the fiber's block; 0 if it is unknown
    # @!attribute [r] task
    #   @return [String] the annotation of the fiber's task of the gem async; empty without one
    # @!attribute [r] stack
    #   @return [Array<Array(String, String, Integer)>] where the fiber was, innermost call first: function, file and line. Of
    #     several samples the most frequent one; without samples, where it yielded at last. Empty if it is unknown
    # @!attribute [r] holder
    #   @return [String] the name of the thread that held the lock in the longest wait; empty if that is unknown
    # @!attribute [r] holder_stack
    #   @return [Array<Array(String, String, Integer)>] that thread's stack, as `stack`
    LateEvent = Data.define(
      :kind, :cause, :nanoseconds, :computed_ns, :blocked_ns, :gc_ns, :lock_ns, :not_run_ns, :thread, :function, :file,
      :line, :task, :stack, :holder, :holder_stack
    ) do
      # @return [String] all of this in a sentence
      def text = "the event loop of '#{thread}' was late: #{what}: #{said_parts.join(", ")}"

      # @return [String] {#text}
      def to_s = text

      # @return [Boolean] whether `nanoseconds` is measured; of a wakeup it is the sum of what kept the loop from running
      def exact? = kind != "wakeup"

      private

      def what
        took = milliseconds(nanoseconds)
        return "it was kept from running for #{took}" if kind == "wakeup"

        task_text = task.empty? ? "" : " of task '#{task}'"
        inner = stack.find { |_, file, _| !file.start_with?("<internal:") } || stack.first
        at = inner ? ", in #{inner[0]} (#{inner[1]}:#{inner[2]})," : ""
        name = "#{function.empty? ? "a fiber" : function}#{" (#{file}:#{line})" unless file.empty?}#{task_text}#{at}"
        kind == "callback" ? "#{name} took #{took}" : "a round of fibers, the last of them #{name} took #{took}"
      end

      def said_parts
        words = { "computed" => computed_ns, "blocked" => blocked_ns, "garbage collection" => gc_ns,
                  "waited for the lock" => lock_ns, "not run by the system" => not_run_ns }
        parts = words.sort_by { |_, part| -part }.select { |_, part| part * 100 >= nanoseconds }
        parts.map { |word, part| "#{word} #{milliseconds(part)}#{held_by if part == lock_ns && word.end_with?("lock")}" }
      end

      def held_by
        return if holder.empty?

        inner = holder_stack.first
        " (held by '#{holder}'#{", #{inner[0]} (#{inner[1]}:#{inner[2]})" if inner})"
      end

      def milliseconds(nanoseconds) = format("%.1f ms", nanoseconds / 1e6)
    end

    # How often and for how long one cause made a loop late.
    #
    # @!attribute [r] number
    #   @return [Integer] the number of late events of which it was the largest part
    # @!attribute [r] nanoseconds
    #   @return [Integer] the sum of that part of all late events
    LateCount = Data.define(:number, :nanoseconds)
  end
end
