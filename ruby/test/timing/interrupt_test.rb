# frozen_string_literal: true

require "timeout"
require_relative "../test_helper"

# Interrupted work ends long before it would be complete, and leaves no memory behind.
class InterruptTest < Minitest::Test
  include Texts

  CALLS = {
    encode: ->(text) { [text] },
    encode_batch: ->(text) { [[text] * 3, { threads: 2 }] },
    count: ->(text) { [text] },
    count_batch: ->(text) { [[text] * 3] },
    truncate: ->(text) { [text, 1 << 40] },
    chunks: ->(text) { [text, 1 << 40] },
    decode: ->(_) { ["\x00".b * (1 << 27)] }
  }.freeze

  # Starts a call in a thread that is interrupted shortly after, and asserts that it ends.
  def assert_ends(name, arguments, **options)
    started = Queue.new
    thread = Thread.new do
      started.push(true)
      o200k.public_send(name, *arguments, **options)
    end
    thread.report_on_exception = false
    started.pop
    sleep(rand * 0.03)
    yield thread
    assert thread.join(2), "#{name} goes on"
  rescue RuntimeError => e
    assert_equal "stop", e.message
  end

  CALLS.each_key do |name|
    %i[always never].each do |release|
      define_method(:"test_#{name}_#{release}_can_be_killed") do
        *arguments, last = CALLS.fetch(name).call(endless)
        options = last.is_a?(Hash) ? last : {}
        arguments << last unless last.is_a?(Hash)
        assert_ends(name, arguments, release:, **options, &:kill)
        assert_ends(name, arguments, release:, **options) { |thread| thread.raise("stop") }
      end
    end
  end

  def test_timeout
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { o200k.encode(endless) } }
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { o200k.encode(endless, release: :never) } }
  end

  def test_building_a_long_result_can_be_interrupted
    tokens = o200k.encode(text_of(3_000_000))
    huge = o200k.decode_bytes(tokens * 20, release: :always)
    assert_equal huge.bytesize, text_of(3_000_000).bytesize * 20
    assert_raises(Timeout::Error) { Timeout.timeout(0.01) { loop { o200k.decode(tokens * 20) } } }
  end

  def wake(thread, times)
    times.times { thread.wakeup && sleep(0.001) }
  rescue ThreadError
    # The thread has ended.
  end

  def test_a_wake_up_does_no_harm
    [200_000, 6_000_000].each do |size|
      text = text_of(size)
      expected = o200k.count(text)
      thread = Thread.new { o200k.encode(text, release: :always).size }
      wake(thread, 20)
      assert_equal expected, thread.value
    end
  end

  def test_a_trap_handler_does_no_harm
    handled = 0
    old = trap("USR1") { handled += 1 }
    text = text_of(3_000_000)
    expected = o200k.count(text)
    signaller = Thread.new { 5.times { Process.kill("USR1", Process.pid) && sleep(0.01) } }
    assert_equal expected, o200k.encode(text, release: :always).size
    signaller.join
    assert_operator handled, :>, 0
  ensure
    trap("USR1", old)
  end

  def test_ctrl_c_ends_a_program
    %i[auto never].each do |release|
      output, status = run_ruby(<<~RUBY)
        encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
        text = "some words and 日本語 " * 20_000_000
        spawn("sleep 0.3; kill -INT \#{Process.pid}")
        begin
          encoding.encode(text, release: :#{release})
        rescue Interrupt
          print "interrupted"
        end
      RUBY
      assert_equal ["interrupted", true], [output, status.success?]
    end
  end

  # Returns the resident pages of this process.
  def resident
    `ps -o rss= -p #{Process.pid}`.to_i * 1024
  end

  def interrupt_many(count, text)
    count.times do |n|
      thread = Thread.new { o200k.encode(text, release: :always) }
      thread.report_on_exception = false
      sleep(0.0005)
      n.even? ? thread.kill : thread.raise("stop")
      thread.join
    rescue RuntimeError
      next
    end
    GC.start
  end

  def test_a_thousand_interrupted_calls_leave_nothing_behind
    text = text_of(5_000_000)
    interrupt_many(50, text)
    before = resident
    interrupt_many(1000, text)
    assert_operator resident - before, :<, 40_000_000
  end
end
