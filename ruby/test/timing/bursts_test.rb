# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/large_operations"

# Operations that make many objects release the lock every millisecond or two, and end soon after an interrupt. The garbage
# collector is off, because it stops everything for as long as it needs. The best of a few attempts counts, because other
# programs use the processors, too.
class BurstsTest < Minitest::Test
  include Texts

  # The goal is 2 ms. On a quiet machine nearly all operations hold the lock for 1 to 3 ms at most. On a busy one, where a thread
  # that holds the lock may wait for a processor, a hold may instead be a small part of all the time with the lock: an operation
  # that does not release the lock holds it once, or nearly.
  LONGEST_HOLD = 0.005
  SMALL_PART = 0.05
  # The rest of a large Hash is copied in one go before the lock is released, because it must not change meanwhile.
  COPIES = { "MessagePack.pack of a Hash" => 0.03 }.freeze
  LATEST = 0.05
  ATTEMPTS = 12

  # Functions that take nothing large, or do the work of another one that is in the table.
  OTHERS = {
    "MessagePack" => %i[dump load], "Zlib" => %i[adler32 adler32_combine crc32_combine crc_table zlib_version],
    "Zstd" => %i[finalize_dict frame_info zstd_version]
  }.freeze

  class Stop < StandardError
  end

  def teardown
    GC.enable
    GC.start
  end

  def without_gc
    GC.enable
    GC.start
    GC.disable
    yield
  ensure
    GC.enable
  end

  # Returns the longest hold of the operation, beside a thread that asks for the lock every half millisecond.
  def longest_hold(operation, input)
    done = false
    probe = Thread.new { sleep(0.0005) until done }
    summary = Offlock::Lock.measure do
      Thread.new { operation.call(input) }.tap { |thread| thread.name = "works" }.join
    end
    thread = summary.to_h[:threads].find { |one| one[:name] == "works" }
    hold = thread[:longest_hold]
    hold < thread[:times][:running] * SMALL_PART ? 0 : hold / 1e9
  ensure
    done = true
    probe.join
  end

  # Returns the time from an exception that another thread raises to the end of the operation.
  def lateness(operation, input)
    thread = Thread.new { loop { operation.call(input) } }
    thread.report_on_exception = false
    sleep(0.02 + rand * 0.08)
    raised = clock
    thread.raise(Stop)
    assert_raises(Stop) { thread.join }
    clock - raised
  end

  # Returns the smallest value of the block, as soon as it is small enough.
  def least(enough, &)
    best = Float::INFINITY
    ATTEMPTS.times do
      best = [best, without_gc(&)].min
      break if best < enough
    end
    best
  end

  LargeOperations::TABLE.each do |name, (prepare, operation)|
    define_method(:"test_#{name.tr("^A-Za-z_0-9", "_")}") do
      input = prepare.call
      enough = COPIES.fetch(name, LONGEST_HOLD)
      hold = least(enough) { longest_hold(operation, input) }
      assert_operator hold, :<, enough, "holds the lock too long"
      late = least(LATEST) { lateness(operation, input) }
      assert_operator late, :<, LATEST, "ends too late"
    end
  end

  def test_every_function_of_a_module_has_a_large_operation
    there = LargeOperations::TABLE.keys.map { |name| name.split.first }
    %w[JSONL MessagePack Strings Zlib Zstd].each do |name|
      functions = Offlock.const_get(name).singleton_methods(false) - OTHERS.fetch(name, [])
      assert_empty functions.map { "#{name}.#{_1}" } - there
    end
  end

  # Without another thread there is none to release the lock for, but there are signals.
  def test_ctrl_c_in_the_only_thread
    support = File.expand_path("../support/large_operations", __dir__)
    names = ["Strings.split", "MessagePack.pack", "MessagePack.unpack", "MessagePack.unpack_all", "Unpacker#read", "encode_batch"]
    names.each do |name|
      output, status = run_ruby(<<~RUBY)
        require #{support.inspect}
        prepare, operation = LargeOperations::TABLE.fetch(#{name.inspect})
        input = prepare.call
        sent, received = IO.pipe
        GC.disable
        latest = Array.new(5) do
          spawn("sleep 0.0\#{rand(3..9)}; date +%s.%N; kill -INT \#{Process.pid}", out: received)
          loop { operation.call(input) }
        rescue Interrupt
          Process.clock_gettime(Process::CLOCK_REALTIME) - sent.gets.to_f
        ensure
          GC.enable && GC.start && GC.disable
        end.min
        print latest < 0.05
      RUBY
      assert_equal ["true", true], [output, status.success?], name
    end
  end
end
