# frozen_string_literal: true

require_relative "loop_watch/event"
require_relative "loop_watch/gauges"
require_relative "loop_watch/fiber_meter"

module Offlock
  module Lock
    # A watch of the event loop of a fiber scheduler, made by {Lock.watch_loop}.
    class LoopWatch
      include Log

      # The name of the thread of a watch.
      # @private
      THREAD = "offlock loop watch"
      # For how many nanoseconds stacks and the holder of the lock are waited for: a flight recorder looks every 10 ms, and
      # then needs the lock.
      PATIENCE = 200_000_000
      # The most alarms of the lock that are kept.
      ALARMS = 256
      # The most stops of the process that are remembered.
      STOPS = 64
      # The schedulers that are watched.
      WATCHED = {}.compare_by_identity
      private_constant :PATIENCE, :ALARMS, :STOPS, :WATCHED

      # @param threshold [Numeric] see {Lock.watch_loop}
      # @param logger [#warn, nil] see {Lock.watch_loop}
      # @param on_late [Proc, nil] see {Lock.watch_loop}
      # @raise [ArgumentError] if +threshold+ is out of range
      # @raise [RuntimeError] if the thread has no fiber scheduler, or its loop is being watched already
      # @raise [Ractor::UnsafeError] in a Ractor other than the main one
      def initialize(threshold, logger, on_late)
        Instrumentation.check_ractor
        raise ArgumentError, "threshold: #{threshold} is not a number of seconds of at least 0.001" unless limit?(threshold)

        @scheduler = Fiber.scheduler or raise "this thread has no fiber scheduler whose loop could be watched"
        @limit, @logger, @on_late = (threshold * 1e9).round, logger, on_late
        @counts = Gauges::CAUSES.to_h { |cause| [cause, LateCount.new(0, 0)] }
        @running = false
        start unless Native.switched_off
      end

      # @return [Boolean] whether the loop is being watched, by this process
      def running? = @running

      # @return [Integer] how often the loop was late
      def number = @counts.each_value.sum(&:number)

      # @return [Integer] by how much the loop was late in all
      def nanoseconds = @counts.each_value.sum(&:nanoseconds)

      # @return [Hash{String => LateCount}] how often and for how long by cause: the keys are those of {LateEvent#cause}
      def counts = @counts.dup

      # Stops watching. A second call changes nothing. What was found is told before it returns, if that takes no longer than a
      # second. Called in the loop's thread by a fiber, other fibers may run meanwhile.
      #
      # @return [void]
      def stop
        return unless @running

        @running = false
        @meter.finish
        @found << nil
        @watching.join(1) unless Thread.current == @watching
        forget
        nil
      end

      # @return [String] whether the watch is running, and the number of late events
      def inspect = "#<#{self.class} #{running? ? "running" : "stopped"}, #{number} late>"

      # Has no effect in a forked child, in which its thread does not exist.
      # @private
      def start_again
        @running = false
        @meter.finish
        forget
      end

      private

      def limit?(threshold) = threshold.is_a?(Numeric) && threshold >= 0.001 && threshold.to_f.finite?

      def start
        raise "the loop is being watched already" if WATCHED[@scheduler]

        WATCHED[@scheduler] = self
        @found, @alarms, @stops = Thread::Queue.new, Thread::Queue.new, []
        @least = [@limit / 5, 1_000_000].max
        Gauges.enter
        @recorder = record_waits
        @running = true
        @meter = FiberMeter.new(@limit, @found)
        @watching = Thread.new { run }
        @watching.name = THREAD
        Forks.add(self)
        @meter.start
      end

      # Has the waits for the lock told by a flight recorder: those of the loop for other threads, and those of the watch's own
      # thread for the loop, which tell where a fiber is that computes.
      def record_waits
        recorder = FlightRecorder.new(seconds: 1, memory: 1 << 20, stacks: @least / 2e9)
        Forks.remove(recorder)
        recorder.on_any_wait(@least / 1e9) { |alarm| waited(alarm) }
        recorder
      end

      def waited(alarm)
        @alarms << [Gauges.clock, alarm]
        @alarms.pop if @alarms.size > ALARMS
      end

      def forget
        WATCHED.delete(@scheduler)
        Forks.remove(self)
        @recorder.stop
        Gauges.leave
      end

      # Samples stacks, and tells what was found: the watch's own thread.
      def run
        interval = [0.002, @limit / 4e9].max
        own, pending, over, alarms = Gauges.new, [], false, []
        until over && pending.empty?
          before = own.read(Gauges.clock)
          found = @found.pop(timeout: interval)
          over ||= !@running && found.nil?
          pending << found if found
          @meter.sample(Gauges.clock)
          now = Gauges.clock
          notice_stop(before, own.read(now), interval)
          alarms = recent(alarms, now)
          pending = pending.reject { |late| told?(late, now, alarms) }
        end
      end

      # This thread slept too long, and neither the lock nor a lack of processors explains it: all were stopped.
      def notice_stop(before, after, interval)
        time, _, lock, delay = after.zip(before).map { |now, then_| now - then_ }
        stopped = time - (interval * 1e9).round - lock - delay
        @stops << [before.first, after.first, stopped] if stopped > @limit / 4
        @stops.shift if @stops.size > STOPS
      end

      # Takes the time in which the whole process was stopped out of what looks like blocking.
      def with_stops(late)
        stopped = @stops.sum { |from, to, most| ([to, late.to].min - [from, late.from].max).clamp(0, most) }
        computed, blocked, gc, lock, not_run = late.parts
        moved = [blocked, stopped].min
        [computed, blocked - moved, gc, lock, not_run + moved]
      end

      def recent(alarms, now)
        alarms << @alarms.pop until @alarms.empty?
        alarms.reject { |time, _| now - time > 10 * PATIENCE }
      end

      # Tells what was found, unless it is not known yet who held the lock, or where the fiber was.
      def told?(late, now, alarms)
        during = alarms.select { |time, _| time.between?(late.from, late.to + PATIENCE) }.map(&:last)
        holder, keeper = holder_of(late, during), keeper_of(late, during)
        is_known = waits?(late) ? holder : keeper || late.stack.any?
        return false unless is_known || now >= late.to + PATIENCE

        tell(event_of(late, holder, keeper))
        true
      end

      def waits?(late) = late.parts[3] >= @least

      # The longest wait of the loop's thread.
      def holder_of(late, alarms)
        alarms.select { |alarm| alarm.waiting == name && alarm.holder != name }.max_by(&:nanoseconds) if waits?(late)
      end

      # The longest wait for the loop's thread, within the delay.
      def keeper_of(late, alarms)
        longest = late.to - late.from + PATIENCE
        alarms.select { |alarm| alarm.holder == name && alarm.nanoseconds <= longest }.max_by(&:nanoseconds)
      end

      def name = @name ||= Instrumentation.threads.find { |thread, _| thread == @meter.thread }&.fetch(1) || ""

      def event_of(late, holder, keeper)
        parts = with_stops(late)
        stack = keeper && parts[0] > parts[1] && late.fiber ? keeper.stack : late.stack
        function, file, line = outermost(stack) || of_fiber(late.fiber)
        cause = Gauges::CAUSES[parts.each_with_index.max.last]
        LateEvent.new(late.kind, cause, parts.sum, *parts, name, function, file, line, late.task, stack,
                      holder&.holder || "", holder&.stack || [])
      end

      # The outermost frame that is not the scheduler's, which lies in another folder than the program, or in Ruby itself.
      def outermost(stack)
        stack.reverse_each.find { |_, file, _| !file.start_with?("<internal:") && !file.start_with?(*library) }
      end

      # The folder of the scheduler, if it is a library.
      def library
        @library ||= begin
          file = @scheduler.class.instance_method(:fiber).source_location&.first.to_s
          [file[%r{\A.*/gems/[^/]+/}] || file[%r{\A.*/(?:vendor|site)_ruby/}]].compact
        end
      end

      # What is known of a fiber whose stack is unknown: where its block is.
      def of_fiber(inspected)
        file, line = inspected.to_s.match(/ (\S+):(\d+) \(/)&.captures
        ["", file.to_s, line.to_i]
      end

      def tell(event)
        Gauges::CAUSES.each do |cause|
          count = @counts[cause]
          number = count.number + (cause == event.cause ? 1 : 0)
          @counts[cause] = LateCount.new(number, count.nanoseconds + event.public_send(:"#{cause}_ns"))
        end
        log(event.text)
        @on_late&.call(event)
      rescue StandardError => e
        log("on_late raised #{e.class}: #{e.message}")
      end
    end
  end
end
