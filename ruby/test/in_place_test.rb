# frozen_string_literal: true

require_relative "test_helper"

# Strings whose bytes another thread overwrites in place, although they are shared or locked.
class InPlaceTest < Minitest::Test
  include Texts

  TEXT = "some words, and others\n" * 50_000

  def setup
    skip "no IO::Buffer here" unless defined?(IO::Buffer)
    @before, Warning[:experimental] = Warning[:experimental], false
  end

  def teardown
    Warning[:experimental] = @before unless @before.nil?
  end

  # Runs an operation while another thread overwrites the bytes of the String that `prepare` returns.
  def overwritten(prepare)
    original = TEXT.dup
    outcome = nil
    IO::Buffer.for(original) do |buffer|
      text = prepare.call(original)
      done = false
      writer = Thread.new do
        until done
          ["\xFF", "x"].each { |byte| buffer.set_string(byte * 1000, 5000) }
          Thread.pass
        end
      end
      outcome = yield text
      done = true
      writer.join
    end
    outcome
  end

  KINDS = {
    locked: ->(string) { string }, copied: ->(string) { string.dup },
    frozen_copy: ->(string) { string.dup.freeze }, part: ->(string) { string.byteslice(0, string.bytesize - 10) }
  }.freeze

  KINDS.each do |name, prepare|
    define_method(:"test_lines_stay_what_they_were_#{name}") do
      original = TEXT.dup
      lines = IO::Buffer.for(original) do |buffer|
        Offlock::Strings.lines(prepare.call(original)).tap { buffer.set_string("\xFF" * 10_000) }
      end
      assert_equal "some words, and others\n", lines.first
    end

    define_method(:"test_messages_stay_what_they_were_#{name}") do
      next if name == :part

      packed = Offlock::MessagePack.pack([TEXT, "end"])
      view, unpacker = IO::Buffer.for(packed) do |buffer|
        message = prepare.call(packed)
        read = [Offlock::MessagePack.view(message), Offlock::MessagePack::Unpacker.new.feed(message)]
        read.tap { buffer.set_string("\xC1" * 10_000) }
      end
      assert_equal [[TEXT, "end"]] * 2, [view.build, unpacker.read]
    end
  end

  def test_text_that_changes_meanwhile
    KINDS.each_value do |prepare|
      20.times do
        tokens = overwritten(prepare) do |text|
          text.valid_encoding?
          o200k.encode(text, release: :always)
        rescue EncodingError => e
          e
        end
        assert(tokens.is_a?(Array) || tokens.is_a?(EncodingError))
      end
    end
  end

  # A String is locked while a thread reads into it.
  def test_a_string_that_is_read_into
    IO.pipe do |source, sink|
      target = +("before" * 5000)
      reader = Thread.new { source.readpartial(30_000, target) }
      Thread.pass until reader.status == "sleep"
      size = target.bytesize
      lines = Offlock::Strings.split(target, "before")
      sink.write("z" * 30_000)
      reader.join
      assert_equal [""], lines.uniq.map { |line| line.delete("\0") }.uniq if size.positive?
    end
  end
end
