# frozen_string_literal: true

require_relative "test_helper"

# Threads that work without the lock while the process forks or exits, or while their input changes.
class ProcessTest < Minitest::Test
  include Texts

  # Runs threads that encode until the block returns.
  def meanwhile(text = text_of(300_000), count: 2)
    threads = Array.new(count) { Thread.new { loop { o200k.encode(text, release: :always) } } }
    yield
  ensure
    threads.each(&:kill).each(&:join)
  end

  def test_a_forked_child_can_encode
    expected = o200k.encode(text_of(200_000))
    meanwhile do
      10.times do
        pid = fork { exit!(o200k.encode(text_of(200_000), release: :always) == expected) }
        assert_predicate Process.wait2(pid).last, :success?
      end
    end
  end

  def test_a_forked_child_can_use_threads_and_load_encodings
    output, status = run_ruby(<<~RUBY)
      encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
      texts = ["some words and 日本語 " * 50_000] * 4
      threads = 2.times.map { Thread.new { loop { encoding.encode_batch(texts, threads: 2) } } }
      sleep(0.05)
      5.times do
        pid = fork do
          tokens = encoding.encode_batch(texts, threads: 2, release: :always)
          more = Offlock::Tiktoken.get_encoding(:r50k_base).encode("hello")
          exit!(tokens.uniq.size == 1 && more == [31373])
        end
        print Process.wait2(pid).last.success?
      end
      threads.each(&:kill)
    RUBY
    assert_equal ["true" * 5, true], [output, status.success?]
  end

  def test_the_process_can_end_while_threads_work
    started = clock
    output, status = run_ruby(<<~RUBY)
      encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
      text = "some words and 日本語 " * 5_000_000
      4.times { |n| Thread.new { loop { encoding.encode(text, release: n.even? ? :always : :never) } } }
      sleep(0.3)
      print "end"
    RUBY
    assert_equal ["end", true], [output, status.success?]
    assert_operator clock - started, :<, 30
  end

  def test_a_text_that_changes_meanwhile
    original = text_of(8_000_000)
    expected = o200k.encode(original)
    [:clear, ->(text) { text << "more" }, ->(text) { text.setbyte(5, 0xFF) }, ->(text) { text.replace("x") },
     ->(text) { text.force_encoding("BINARY").tr!("a-z", "b") }].each do |change|
      text = +original
      text = text.dup << "" # a String with its own memory
      thread = Thread.new { o200k.encode(text, release: :always) }
      Thread.pass until thread.stop?
      change.to_proc.call(text)
      GC.start
      assert_equal expected, thread.value
    end
  end

  def test_texts_of_a_batch_that_change_meanwhile
    texts = Array.new(2000) { |n| +"short #{n}" } + Array.new(40) { text_of(400_000) }
    expected = texts.map { |text| o200k.encode(text) }
    thread = Thread.new { o200k.encode_batch(texts, release: :always, threads: 2) }
    # Longer than it takes to borrow the texts, during which the thread yields the lock, and shorter than the work.
    sleep(0.02)
    assert_predicate thread, :alive?
    texts.each { |text| text.replace("changed") }
    texts.clear
    GC.start
    assert_equal expected, thread.value
  end

  def test_a_large_text_is_not_copied
    skip "needs ps" unless system("command -v ps >/dev/null")
    output, status = run_ruby(<<~RUBY)
      encoding = Offlock::Tiktoken.get_encoding(:o200k_base)
      encoding.count("x")
      text = "some words and more " * 10_000_000
      rss = -> { `ps -o rss= -p \#{Process.pid}`.to_i * 1024 }
      before = rss.call
      peak = 0
      thread = Thread.new { encoding.count(text) }
      20.times { (peak = [peak, rss.call].max) && sleep(0.01) }
      thread.kill.join
      print peak - before < text.bytesize / 4
    RUBY
    assert_equal ["true", true], [output, status.success?]
  end
end
