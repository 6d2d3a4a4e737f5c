# frozen_string_literal: true

module Offlock
  module Lock
    # Measures the loop of a fiber scheduler where Ruby switches between its thread's fibers. The loop runs in the thread's
    # own fiber, as the interface of schedulers demands; all others are fibers that it resumes, or that these resume. All but
    # {#sample} and {#finish} runs in the loop's thread.
    # @private
    class FiberMeter
      # What was found.
      Late = Data.define(:kind, :from, :to, :parts, :fiber, :task, :stack)

      # The most frames of a stack.
      FRAMES = 64
      # The most samples of one delay.
      SAMPLES = 100

      attr_reader :thread

      def initialize(limit, found)
        @limit, @found = limit, found
        @resolution = [1_000_000, limit / 50].min
        @thread = Thread.current
        @gauges = Gauges.new
        @samples, @sampled = [], 0
        @point = TracePoint.new(:fiber_switch) { switched }
      end

      # Starts to measure. Called in the loop's thread.
      def start
        now = Gauges.clock
        read(now)
        @round = @begun = now
        @fiber = Fiber.current
        @in_loop = @fiber.blocking?
        @round_base, @told = @base, false
        @point.enable(target_thread: @thread)
      end

      # Stops measuring; in the loop's thread, what is late now is found, too.
      def finish
        switched if @point.enabled? && Thread.current == @thread
        @point.disable
      end

      # Looks where a fiber is that runs for long already. Runs in the watch's thread.
      def sample(now)
        begun = @begun
        return if @in_loop || now - begun < @limit / 2

        stack = self.class.stack_of(@thread)
        return if stack.empty? || @begun != begun

        @samples, @sampled = [], begun if @sampled != begun
        @samples << stack if @samples.size < SAMPLES
      end

      # The stack of a thread or of a fiber, innermost call first: function, file and line.
      def self.stack_of(owner)
        (owner.backtrace_locations(0, FRAMES) || []).map do |location|
          [location.label, location.path, location.lineno]
        end
      end

      private

      def switched
        now = Gauges.clock
        begun, fiber, was_in_loop = @begun, @fiber, @in_loop
        if now - begun > @limit
          was_in_loop ? loop_ran(begun, now) : fiber_ran("callback", begun, now, @base, fiber)
        end
        @fiber = Fiber.current
        @in_loop = @fiber.blocking?
        round_ran(now, fiber) if @in_loop && !was_in_loop
        read(now) if now > @stale
        @begun = Gauges.clock
        @round, @round_base, @told = @begun, @base, false if was_in_loop
      end

      # One round of the loop took long, in fibers of which none did.
      def round_ran(now, fiber)
        fiber_ran("iteration", @round, now, @round_base, fiber) if now - @round > @limit && !@told
      end

      def fiber_ran(kind, from, now, base, fiber)
        @told = true
        tell(kind, from, now, Gauges.split(base, read(now), now - from), fiber)
      end

      # The loop waits in its own fiber, for as long as it has nothing to do. Only what kept it from running counts.
      def loop_ran(from, now)
        base = @base
        computed, _, *others = Gauges.split(base, read(now), now - from)
        parts = [computed, 0, *others]
        tell("wakeup", now - parts.sum, now, parts, nil) if parts.sum > @limit
      end

      def read(now)
        @stale = now + @resolution
        @base = @gauges.read(now)
      end

      def tell(kind, from, now, parts, fiber)
        Native.mark_begin("late: #{kind}")
        Native.mark_end(nil)
        stack = @samples.tally.max_by(&:last)&.first if @sampled == @begun
        stack ||= fiber ? self.class.stack_of(fiber) : []
        task = fiber.async_task&.annotation if fiber.respond_to?(:async_task)
        @found << Late.new(kind:, from:, to: now, parts:, fiber: fiber&.inspect, task: task.to_s, stack:)
      end
    end
    private_constant :FiberMeter
  end
end
