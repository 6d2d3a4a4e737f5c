# frozen_string_literal: true

require "objspace"
require "stringio"
require "timeout"
require_relative "../test_helper"

module MessagePackTests
  # The usual calls of MessagePack, and hostile ones.
  class MessagePackTest < Minitest::Test
    MessagePack = Offlock::MessagePack
    include Texts

    RECORDS = Array.new(40) do |n|
      { "id" => n, "text" => n.odd? ? "é#{n}" : "a" * n, "user" => { "name" => "n" }, "tags" => [nil, true, 1.5, n << 40] }
    end.freeze

    # An object with its own extension type.
    Point = Struct.new(:x, :y) do
      def to_msgpack_ext = [x, y].pack("l>2")

      def self.from_msgpack_ext(data) = new(*data.unpack("l>2"))
    end

    # If each entry took time in proportion to the Hash, this would take minutes.
    def test_large_maps
      keys = ->(count) { (0...count).to_h { |n| [n, "value"] }.merge((0...count).to_h { |n| ["key #{n}", n] }) }
      [16, 17, 100, 400_000].each do |count|
        expected = keys.call(count)
        packed = Offlock::MessagePack.pack(expected)
        assert_equal expected, Timeout.timeout(20) { Offlock::MessagePack.unpack(packed) }
      end
    end

    # What is before an extension must not be written again for each Hash around it.
    def test_an_extension_within_many_hashes
      factory = Offlock::MessagePack::Factory.new
      factory.register_type(1, Point)
      numbers = (0...100_000).to_a
      times = [5, Point.new(3, 4)].map do |last|
        innermost = numbers + [last]
        nested = 100.times.reduce(innermost) { |inner, _| { "in" => inner, "n" => 1 } }
        expected = ("\x82\xa2in".b * 100) + factory.dump(innermost) + ("\xa1n\x01".b * 100)
        assert_equal expected, factory.dump(nested)
        Array.new(3) do
          start = clock
          factory.dump(nested)
          clock - start
        end.min
      end
      assert_operator times[1], :<, times[0] * 20
    end

    # Long Strings are copied in pieces, between which other threads may run.
    def test_long_strings
      text, binary = "é" * 400_000, "\xFF".b * 600_000
      value = [text, binary, { "in a Hash" => text, binary => nil }, text.encode("UTF-16LE")]
      expected = value[..2] + [text]
      packed = MessagePack.pack(value)
      assert_equal packed, MessagePack::Packer.new.write(value).to_s
      built = %i[auto always never].map { |release| MessagePack.unpack(packed, release: release) }
      built << MessagePack::Unpacker.new.feed(packed).read << MessagePack.unpack_all([packed])[0]
      built << MessagePack::Unpacker.new.feed(packed[0, 900_000]).feed(packed[900_000..]).read
      built << MessagePack.unpack(packed, freeze: true)
      assert_equal [expected], built.uniq
      assert_equal [[Encoding::UTF_8, Encoding::BINARY]], built.map { |made| made[0, 2].map(&:encoding) }.uniq
    end

    def test_the_headers_of_long_strings
      text = "é" * 400_000
      size = [text.bytesize].pack("N")
      [["\xDB", text], ["\xDB", text.dup.force_encoding("US-ASCII")], ["\xC6", text.b]].each do |header, string|
        assert_equal header.b + size + text.b, MessagePack.pack(string)
        assert_equal "\xDB".b + size + text.b, MessagePack::Packer.new(compatibility_mode: true).write(string).to_s
      end
      extension = MessagePack::Packer.new.write_ext(7, text).to_s
      assert_equal text.b, MessagePack.unpack(extension, allow_unknown_ext: true).payload
    end

    def test_what_a_message_takes_does_not_depend_on_the_one_before
      long = "x" * 300_000
      [1_000, 300, 100_000, 600, 300_000, 700].each do |length|
        message = MessagePack.pack(long.byteslice(0, length))
        assert_equal long.byteslice(0, length), MessagePack.unpack(message)
        assert_operator ObjectSpace.memsize_of(message), :<=, (2 * length) + 200
      end
    end

    def test_round_trip
      assert_equal RECORDS, MessagePack.unpack(MessagePack.pack(RECORDS))
      assert_equal RECORDS, MessagePack.unpack(MessagePack.pack(RECORDS), release: :always)
      assert_equal MessagePack.pack(RECORDS), MessagePack::Packer.new.write(RECORDS).to_s
    end

    def test_options
      message = MessagePack.pack({ "a" => ["b"] })
      assert_equal({ a: ["b"] }, MessagePack.unpack(message, symbolize_keys: true))
      frozen = MessagePack.unpack(message, freeze: true)
      assert frozen.frozen? && frozen["a"].frozen? && frozen["a"][0].frozen?
      cached = MessagePack::Unpacker.new(key_cache: true).feed(message * 2).each.to_a
      assert_same cached[0].keys[0], cached[1].keys[0]
    end

    def test_remembered_keys_survive_the_collector
      hashes = Array.new(300) { |n| { "key #{n}" => n, "k" * (n % 40) => [{ "key" => "é" }] } }
      messages = hashes.map { |hash| MessagePack.pack(hash) }
      3.times do
        assert_equal hashes, messages.map { |message| MessagePack.unpack(message) }
        symbols = messages.map { |message| MessagePack.unpack(message, symbolize_keys: true) }
        assert_equal hashes.map(&:size), symbols.map(&:size)
        assert_equal [*0...300], symbols.map { |hash| hash.values.first }
        assert(symbols.all? { |hash| hash.keys.all?(Symbol) })
        GC.start
        GC.compact if GC.respond_to?(:compact)
      end
    end

    def test_a_hash_of_any_size_keeps_its_order_and_the_last_of_equal_keys
      [1, 8, 9, 15, 16, 17, 33, 100].each do |size|
        hash = Array.new(size) { |n| ["k#{n}", n] }.to_h
        assert_equal hash.to_a, MessagePack.unpack(MessagePack.pack(hash)).to_a
      end
      assert_equal({ "a" => 2, "b" => 3 }, MessagePack.unpack("\x83\xa1a\x01\xa1a\x02\xa1b\x03".b))
      assert_equal({ "a" => 2 }, MessagePack.unpack("\xde\x00\x14".b + ("\xa1a\x01".b * 19) + "\xa1a\x02".b))
    end

    def test_registered_types_are_shown_the_same_until_they_change
      factory = MessagePack::Factory.new
      factory.register_type(5, Point)
      shown = factory.registered_types
      assert_equal shown, factory.registered_types
      factory.register_type(6, Comparable, packer: :to_s)
      assert_equal [5, 6], factory.registered_types.map { |entry| entry[:type] }
      Ractor.make_shareable(factory)
      assert_equal [5, 6], factory.registered_types.map { |entry| entry[:type] }
    end

    def test_extensions
      factory = MessagePack::Factory.new
      factory.register_type(5, Point)
      assert_equal [Point.new(1, -2)], factory.load(factory.dump([Point.new(1, -2)]))
      assert_equal Point.new(3, 4), factory.pool(2).then { |pool| pool.load(pool.dump(Point.new(3, 4))) }
      error = assert_raises(MessagePack::UnknownExtTypeError) { MessagePack.unpack(factory.dump(Point.new(1, 2))) }
      assert_match(/type 5 at offset 0/, error.message)
      assert_raises(NoMethodError) { MessagePack.pack(Point.new(1, 2)) }
    end

    def test_recursive_extensions
      factory = MessagePack::Factory.new
      factory.register_type(5, Point, recursive: true,
                                      packer: ->(point, packer) { packer.write(point.x).write(point.y) },
                                      unpacker: ->(unpacker) { Point.new(unpacker.read, unpacker.read) })
      nested = Point.new(Point.new(1, [2, Point.new("é", nil)]), { "k" => Point.new(3, 4) })
      assert_equal [nested, 7], factory.load(factory.dump([nested, 7]))
    end

    def test_exceptions_in_callbacks_leave_everything_usable
      factory = MessagePack::Factory.new
      factory.register_type(5, Point, recursive: true, packer: ->(*) { raise KeyError }, unpacker: ->(*) { raise KeyError })
      packer = factory.packer
      assert_raises(KeyError) { packer.write([1, Point.new(1, 2)]) }
      packer.reset
      assert_equal "\x07".b, packer.write(7).to_s
      unpacker = factory.unpacker
      unpacker.feed("\x92\xd4\x05\x07\x08\x09".b)
      assert_raises(KeyError) { unpacker.read }
      unpacker.reset
      assert_equal 8, unpacker.feed("\x08").read
    end

    def test_callbacks_that_use_the_same_object
      unpacker = MessagePack::Unpacker.new
      unpacker.register_type(5) { |data| unpacker.feed("\x01") && data }
      unpacker.feed("\x92\xd4\x05a\x02".b)
      assert_equal ["a", 2], unpacker.read
      assert_equal 1, unpacker.read
      greedy = MessagePack::Unpacker.new
      greedy.register_type(5) { greedy.reset }
      greedy.feed("\x92\xd4\x05a\x02".b)
      assert_raises(EOFError) { greedy.read }
    end

    def test_objects_that_change_while_they_are_packed
      array = [Point.new(1, 2), 3, 4]
      packer = MessagePack::Packer.new
      packer.register_type(5, Point) { |_| array.clear && "x" }
      assert_equal "93d40578c0c0", packer.write(array).to_s.unpack1("H*")
      hash = { "a" => Point.new(1, 2), "b" => 1 }
      packer.reset
      packer.register_type(5, Point) { |_| hash.delete("b") && "x" }
      assert_equal "82a161d40578a16201", packer.write(hash).to_s.unpack1("H*")
    end

    def test_streams
      io = StringIO.new
      packer = MessagePack::Packer.new(io)
      RECORDS.each { |record| packer.write(record) }
      packer.flush
      io.rewind
      assert_equal RECORDS, MessagePack::Unpacker.new(io).each.to_a
      io.rewind
      assert_equal RECORDS[0], MessagePack::Unpacker.new(io, io_buffer_size: 1024).read
      assert_equal 1, MessagePack.unpack(StringIO.new("\x01"))
      unpacker = MessagePack::Unpacker.new
      seen = []
      io.string.each_char { |byte| unpacker.feed_each(byte.b) { |record| seen << record } }
      assert_equal RECORDS, seen
    end

    def test_a_declared_length_allocates_nothing
      ["\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff\x01"].each do |message|
        before = GC.stat(:malloc_increase_bytes)
        assert_raises(EOFError) { MessagePack.unpack(message.b) }
        assert_raises(EOFError) { MessagePack::Unpacker.new.feed(message.b).read }
        assert_operator GC.stat(:malloc_increase_bytes) - before, :<, 1_000_000
      end
    end

    def test_keys_that_cannot_be_symbols_are_refused
      [{}, { key_cache: true }, { release: :always }].each do |options|
        error = assert_raises(EncodingError) { MessagePack.unpack("\x81\xA2\xDDa\x01".b, symbolize_keys: true, **options) }
        assert_match(/invalid symbol in encoding UTF-8/, error.message)
      end
      assert_equal({ "\xDDa" => 1 }, MessagePack.unpack("\x81\xA2\xDDa\x01".b))
      assert_equal({ é: 1 }, MessagePack.unpack("\x81\xA2\xC3\xA9\x01".b, symbolize_keys: true))
    end

    # Runs in a new process, whose memory depends on these messages only.
    def test_containers_in_containers_take_no_multiple_of_the_message
      skip "the peak of memory is read from /proc" unless File.exist?("/proc/self/status")
      output, status = run_ruby(<<~'RUBY', timeout: 60)
        def peak = File.read("/proc/self/status")[/^VmHWM:\s+(\d+)/, 1].to_i
        before = peak
        ["\xDD", "\xDF"].each do |head|
          length = head == "\xDD" ? 900_000 : 450_000
          message = ((head.b + [length].pack("N") + (head == "\xDF" ? "\xA0".b : "")) * 200) + ("\xC0".b * 900_000)
          %i[never always].each { |release| Offlock::MessagePack.unpack(message, release:) rescue nil }
          Offlock::MessagePack::Unpacker.new.feed(message).read rescue nil
        end
        p peak - before
      RUBY
      assert status.success?, output
      assert_operator output.to_i, :<, 120_000
    end

    def test_depth
      assert_raises(MessagePack::StackError) { MessagePack.unpack(("\x91" * 129) + "\xc0") }
      refute_nil MessagePack.unpack(("\x91" * 128) + "\xc0")
      loop_of_arrays = []
      loop_of_arrays << loop_of_arrays
      assert_raises(SystemStackError) { MessagePack.pack(loop_of_arrays) }
      assert_raises(SystemStackError) { Fiber.new { MessagePack.pack(loop_of_arrays) }.resume }
    end

    def test_errors_name_the_value_and_its_place
      assert_match(/0xc1 at offset 1/, assert_raises(MessagePack::MalformedFormatError) { MessagePack.unpack("\x91\xc1") }.message)
      assert_match(/end of buffer reached.*offset 0/, assert_raises(EOFError) { MessagePack.unpack("\x91") }.message)
      assert_match(/2 extra bytes/, assert_raises(MessagePack::MalformedFormatError) { MessagePack.unpack("\x01\x02\x03") }.message)
      assert_raises(RangeError) { MessagePack.pack(1 << 64) }
    end

    def test_views
      %i[always never].each do |release|
        view = MessagePack.view(MessagePack.pack(RECORDS), release: release)
        assert_equal "é3", view[3]["text"]
        assert_equal "n", view.dig(-1, "user", "name")
        assert_equal %w[id text user tags], view[0].keys
        assert_nil view[0]["none"]
        assert_nil view[99]
        assert_raises(KeyError) { view[0].fetch("none") }
        assert_equal RECORDS, view.build
        assert_equal RECORDS, view.map(&:build)
      end
      assert_equal 7, MessagePack.view("\x07")
    end

    def test_extract
      %i[always never].each do |release|
        message = MessagePack.pack([*RECORDS, {}, { "text" => nil }])
        assert_equal RECORDS.map { |record| record["text"] } + [nil, nil], MessagePack.extract(message, "text", release: release)
        assert_equal (["n"] * 40) + [nil, nil], MessagePack.extract(message, :user, :name, release: release)
        assert_equal RECORDS.map { |record| record["id"] } + [nil, nil], MessagePack.extract(message, "id", release: release)
        assert_equal [1.5, true, -1, nil], MessagePack.extract(MessagePack.pack([1.5, true, -1, nil].map { |v| { "v" => v } }), "v")
        assert_raises(MessagePack::UnexpectedTypeError) { MessagePack.extract(message, "user", release: release) }
        assert_raises(EOFError) { MessagePack.extract(message.chop, "text", release: release) }
      end
    end

    def test_unpack_all
      messages = RECORDS.map { |record| MessagePack.pack(record) }
      assert_equal RECORDS, MessagePack.unpack_all(messages)
      assert_equal RECORDS, MessagePack.unpack_all(messages, release: :always)
      assert_raises(EOFError) { MessagePack.unpack_all(["\x01", "\x91"]) }
    end

    def everything
      factory = MessagePack::Factory.new
      factory.register_type(5, Point)
      message = MessagePack.pack(RECORDS.first(4))
      [MessagePack.unpack(message), MessagePack.unpack(message, release: :always), factory.load(factory.dump(Point.new(1, 2))),
       MessagePack.view(message)[1].build, MessagePack.extract(message, "text"), MessagePack.pack("x" * 600).bytesize,
       MessagePack::Unpacker.new(symbolize_keys: true, key_cache: true).feed(message).each.to_a]
    end

    def test_gc_stress
      expected = everything
      GC.stress = true
      outcome = everything
    ensure
      GC.stress = false
      assert_equal expected, outcome
    end

    def test_compaction
      expected = everything
      GC.auto_compact = true
      outcomes = Array.new(20) { everything.tap { GC.compact } }
      assert_equal [expected] * 20, outcomes
    ensure
      GC.auto_compact = false
    end

    def test_ractors
      output, status = run_ruby(<<~RUBY)
        MessagePack = Offlock::MessagePack
        Warning[:experimental] = false
        class Point
          def to_msgpack_ext = "p"
          def self.from_msgpack_ext(data) = :point
        end
        MessagePack::DefaultFactory.register_type(5, Point)
        factory = MessagePack::Factory.new
        factory.register_type(-1, Time, packer: MessagePack::Time::Packer, unpacker: MessagePack::Time::Unpacker)
        Ractor.make_shareable(factory)
        value = [{ "a" => [1, "b", nil, 2.5] }] * 10
        ractors = 2.times.map do
          Ractor.new(factory, value) do |factory, value|
            own = MessagePack::Factory.new
            own.register_type(7, Symbol, packer: :name, unpacker: ->(data) { data.to_sym })
            outcomes = Array.new(300) do
              [MessagePack.unpack(MessagePack.pack(value)) == value, factory.load(factory.dump(Time.at(7))).to_i,
               own.load(own.dump([:x])), MessagePack.unpack(MessagePack.pack(Point.new)),
               MessagePack.unpack(MessagePack.pack(value), release: :always) == value,
               MessagePack::Unpacker.new.feed(MessagePack::Packer.new.write(1).to_s).read]
            end
            outcomes.uniq
          end
        end
        p ractors.map(&:value)
        refused = Ractor.new do
          MessagePack::DefaultFactory.register_type(6, String)
        rescue Ractor::IsolationError => e
          e.class
        end
        p refused.value
      RUBY
      assert status.success?, output
      assert_equal "#{[[[true, 7, [:x], :point, true, 1]]] * 2}\nRactor::IsolationError\n", output
    end
  end
end
