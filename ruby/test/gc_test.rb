# frozen_string_literal: true

require_relative "test_helper"

# The garbage collector may run, and move objects, at any time.
class GCTest < Minitest::Test
  include Texts

  def everything
    texts = ["short", text_of(2000), "é" * 300, "latin é".encode("ISO-8859-1")]
    tokens = o200k.encode(texts[1], release: :always)
    [tokens, o200k.encode(texts[1], packed: true), o200k.encode_batch(texts, release: :always, threads: 2),
     o200k.count_batch(texts), o200k.decode(tokens, release: :always), o200k.truncate(texts[1], 100, release: :always),
     o200k.chunks(texts[1], 20, overlap: 5, release: :always), streamed(o200k.stream, texts[1]),
     o200k.encode("a<|endoftext|>", allowed_special: ["<|endoftext|>"]), o200k.special_tokens]
  end

  def streamed(stream, text)
    text.bytes.each_slice(500).map { |bytes| stream.feed(bytes.pack("C*"), release: :always) } << stream.total << stream.finish
  end

  # The process is small, because a collection takes as long as there are objects.
  def test_stress_in_several_threads
    output, = run_ruby(<<~RUBY)
      require #{File.expand_path("support/scenarios", __dir__).inspect}
      O200K = Offlock::Tiktoken.get_encoding(:o200k_base)
      def refusals
        [-> { O200K.encode("\\xFF") }, -> { O200K.decode([1 << 30]) }, -> { O200K.encode_batch(["a", 5]) }].map do |call|
          call.call
        rescue StandardError => e
          e.message
        end
      end

      def everything = [refusals, Scenarios::TABLE["tokens"].call(2)]
      expected = everything
      GC.stress = true
      outcomes = Array.new(3) { Thread.new { everything } }.map(&:value)
      GC.stress = false
      print outcomes == [expected] * 3, expected.first.size
    RUBY
    assert_equal "true3", output
  end

  def test_compaction
    skip "no compaction here" unless GC.respond_to?(:verify_compaction_references)
    expected = everything
    GC.verify_compaction_references(expand_heap: true, toward: :empty)
    assert_equal expected, everything
  end

  def test_compaction_during_work
    skip "no compaction here" unless GC.respond_to?(:compact)
    texts = Array.new(3000) { |n| "short text #{n}" } << text_of(400_000)
    expected = texts.map { |text| o200k.encode(text) }
    thread = Thread.new { Array.new(5) { o200k.encode_batch(texts.map(&:dup), release: :always, threads: 2) } }
    (GC.compact && sleep(0.002)) while thread.alive?
    assert_equal [expected] * 5, thread.value
  end

  def test_automatic_compaction
    skip "no compaction here" unless GC.respond_to?(:auto_compact=)
    expected = everything
    GC.auto_compact = true
    outcomes = Array.new(20) { everything.tap { GC.start } }
  ensure
    GC.auto_compact = false
    assert_equal [expected], outcomes.uniq
  end

  def test_encodings_are_never_collected
    GC.start(full_mark: true, immediate_sweep: true)
    assert_equal [24_912], o200k.encode("hello")
  end
end
