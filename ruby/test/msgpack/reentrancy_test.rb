# frozen_string_literal: true

require "stringio"
require "timeout"
require_relative "../test_helper"

# Code of the program that is called in the middle of packing and unpacking, and changes the objects in use. Memory must stay
# intact in any case: each case runs in a process of its own, where freed memory is overwritten.
class ReentrancyTest < Minitest::Test
  include Texts

  PREPARE = <<~RUBY
    require "stringio"
    M = Offlock::MessagePack
    Key = Struct.new(:number) do
      class << self
        attr_accessor :hook
      end

      def hash = (Key.hook&.call; number.hash)

      def eql?(other) = (Key.hook&.call; number == other.number)
    end
    KEYS = M::Factory.new
    KEYS.register_type(1, Key, packer: ->(key) { [key.number].pack("N") }, unpacker: ->(data) { Key.new(data.unpack1("N")) })
    MESSAGE = KEYS.dump([(0...200).to_h { |n| [Key.new(n), "value \#{n}" * 500] }] * 3)

    # Runs the block at the given call of the hook, and not within itself.
    def hooked(after: 20)
      count = 0
      Key.hook = lambda do
        count += 1
        next unless count == after

        yield
        100.times { "x" * 50_000 }
        GC.start
      end
    end

    def attempt
      yield
    rescue StandardError, SystemStackError => e
      e.class
    ensure
      Key.hook = nil
    end
  RUBY

  def isolated(program)
    before = ENV.to_h
    ENV["MALLOC_PERTURB_"] = "165"
    output, status = run_ruby(PREPARE + program)
    assert status.success?, "#{status}\n#{output[0, 2000]}"
    output
  ensure
    ENV.replace(before)
  end

  def key_that_calls(name, action)
    <<~RUBY
      [20, 150, 401].each do |after|
        unpacker = KEYS.unpacker
        # In two pieces, so that the unpacker has its own copy of the bytes.
        unpacker.feed(MESSAGE[0, 100])
        unpacker.feed(MESSAGE[100..])
        hooked(after:) { #{action} }
        outcome = attempt { unpacker.read == KEYS.load(MESSAGE) }
        raise outcome.inspect unless #{!%w[reset feed].include?(name)} || [true, EOFError].include?(outcome)

        attempt { 3.times { unpacker.read } }
        unpacker.reset
        unpacker.feed("\\x01")
        attempt { unpacker.read }
      end
    RUBY
  end

  def type_that_calls(action)
    <<~RUBY
      [true, false].each do |recursive|
        factory = M::Factory.new
        busy = false
        unpacker = nil
        work = lambda do |given|
          next given if busy

          busy = true
          #{action}
          100.times { "x" * 5_000 }
          given
        end
        factory.register_type(1, Key, packer: ->(key, packer = nil) { packer ? packer.write(key.number) && "" : "xyz" },
                                      unpacker: work, recursive:)
        message = factory.dump(Array.new(50) { [Key.new(_1), "v" * 300] })
        unpacker = factory.unpacker
        unpacker.feed(message)
        attempt { unpacker.read }
        attempt { unpacker.read }
        unpacker.reset
        unpacker.feed("\\x01")
        attempt { unpacker.read }
      end
    RUBY
  end

  def packing_that_calls(action)
    <<~RUBY
      Own = Class.new { def to_msgpack(packer) = ($hook&.call; packer.write("own")) }
      Typed = Class.new
      Again = Class.new
      LIST = []
      HASH = {}
      factory = M::Factory.new
      factory.register_type(1, Typed, packer: ->(_) { $hook&.call; "typed" * 10 })
      factory.register_type(2, Again, packer: ->(_, inner) { $hook&.call; inner.write("again" * 10) }, recursive: true)
      [Own, Typed, Again].each do |kind|
        LIST.replace(Array.new(100) { kind.new })
        HASH.replace((0...100).to_h { [_1, kind.new] })
        [LIST, HASH, { "a" => HASH, "b" => LIST }].each do |object|
          packer = factory.packer
          count = 0
          $hook = lambda do
            count += 1
            next unless count == 7

            #{action}
            100.times { "x" * 5_000 }
          end
          attempt { packer.write(object) }
          $hook = nil
          attempt { packer.full_pack }
          packer.reset
          attempt { packer.write("still works") }
        end
      end
    RUBY
  end

  {
    "reset" => "unpacker.reset",
    "feed" => "unpacker.feed('y' * 100_000)",
    "reset_and_feed" => "unpacker.reset; unpacker.feed(MESSAGE)",
    "skip" => "unpacker.skip",
    "read" => "Key.hook = nil; unpacker.read",
    "buffer_clear" => "unpacker.buffer.clear; unpacker.buffer << 'z' * 100_000",
    "buffer_read" => "unpacker.buffer.read",
    "initialize" => "unpacker.send(:initialize, StringIO.new('x'), symbolize_keys: true)",
    "register_type" => "20.times { |n| unpacker.register_type(n + 2) { |data| data } }",
    "raise" => "raise 'stop'"
  }.each do |name, action|
    define_method(:"test_a_key_whose_hash_calls_#{name}") { isolated(key_that_calls(name, action)) }
    define_method(:"test_an_unpacker_of_a_type_that_calls_#{name}") { isolated(type_that_calls(action)) }
  end

  def test_a_key_without_a_type_whose_hash_changes_the_message
    assert_equal "true", isolated(<<~RUBY)
      source = M.pack({ [1, 2] => "a", [3] => "b" * 200, "c" => nil }) * 1
      expected = M.unpack(source.dup)
      message = source.dup
      class Array
        alias plain_hash hash
        def hash = ($hook&.call; plain_hash)
      end
      big = M.pack(Array.new(300) { { [_1] => "b" * 300 } })
      hook = -> { message.replace("\\x81" * 300_000); 10.times { "x" * 300_000 }; GC.start; $hook = nil }
      $hook = hook
      print M.unpack(message) == expected
      message = big.dup
      $hook = hook
      raise "wrong" unless M.unpack(message) == M.unpack(big)
      unpacker = M::Unpacker.new
      unpacker.feed(big)
      $hook = -> { $hook = nil; unpacker.reset; unpacker.feed("q" * 500_000) }
      attempt { unpacker.read }
      unpacker.reset
      raise "wrong" unless unpacker.feed(big).read == M.unpack(big)
    RUBY
  end

  def test_a_trace_point_that_changes_the_message
    assert_equal "true", isolated(<<~RUBY)
      source = M.pack({ [1, "x" * 100] => "a" * 100, "b" => [nil] * 100 })
      expected = M.unpack(source)
      message = source.dup
      trace = TracePoint.new(:c_call) do |call|
        next unless call.method_id == :hash

        trace.disable
        message.replace("\\x00" * 100_000)
        GC.start
      end
      trace.enable
      result = M.unpack(message)
      print result == expected
    RUBY
  end

  def test_a_type_that_registers_types_while_it_is_unpacked
    assert_equal "true", isolated(<<~RUBY)
      factory = M::Factory.new
      unpacker = nil
      factory.register_type(1, Key, packer: ->(_) { "a" }, unpacker: lambda { |data|
        100.times { |n| unpacker.register_type(2 + n) { |other| other * 2 } }
        GC.start
        data
      })
      message = "\\xdc\\x00\\x65".b + factory.dump(Key.new(1)) * 100 + "\\xd6\\x05five".b
      unpacker = factory.unpacker
      print unpacker.feed(message).read == ["a"] * 100 + ["fivefive"]
    RUBY
  end

  def test_the_default_factory_gets_types_while_a_large_message_is_unpacked
    assert_equal "true", isolated(<<~RUBY)
      count = 0
      M::DefaultFactory.register_type(1, Key, packer: ->(key) { [key.number].pack("N") }, unpacker: lambda { |data|
        count += 1
        M::DefaultFactory.register_type(2 + count, Class.new, packer: ->(_) { '' }, unpacker: ->(_) {}) if count < 50
        ObjectSpace.each_object(M::Unpacker) { |other| other.register_type(60 + count) { 1 } } if count < 50
        GC.start if count % 1000 == 0
        data.unpack1("N")
      })
      message = M.pack(Array.new(60_000) { Key.new(_1) })
      sizes = [M.view(message).build.size, M.unpack_all([message])[0].size]
      print M.unpack(message) == (0...60_000).to_a && sizes == [60_000] * 2
    RUBY
  end

  def test_recursive_types_in_large_messages
    assert_equal "true", isolated(<<~RUBY)
      M::DefaultFactory.register_type(1, Key, packer: ->(key, packer) { packer.write(key.number) },
                                              unpacker: ->(unpacker) { Key.new(unpacker.read) }, recursive: true)
      keys = Array.new(100_000) { Key.new(_1) }
      message = M.pack(keys)
      nested = M.pack(Key.new([keys.first(3), "x" * 400_000]))
      print [M.unpack(message), M.unpack_all([message])[0], M.view(message).build].uniq == [keys] &&
        M.unpack(nested, release: :always).number[0] == keys.first(3)
    RUBY
  end

  def test_an_extension_value_that_changes_the_unpacker
    isolated(<<~RUBY)
      unpacker = nil
      M::ExtensionValue.prepend(Module.new { def initialize(...) = (super; $hook&.call) })
      message = "\\xdc\\x00\\xc8".b + ("\\xc7\\x07\\x03payload".b + M.pack("x" * 100)) * 100
      unpacker = M::Unpacker.new(allow_unknown_ext: true)
      unpacker.feed(message)
      $hook = -> { $hook = nil; unpacker.reset; unpacker.feed("q" * 500_000); GC.start }
      attempt { unpacker.read }
      copy = message.dup
      $hook = -> { $hook = nil; copy.replace("q" * 500_000); GC.start }
      raise "wrong" unless M.unpack(copy, allow_unknown_ext: true).size == 200
    RUBY
  end

  def test_an_io_that_uses_its_own_unpacker
    %w[reset skip read feed('a'*9999) buffer.clear buffer.read].each do |action|
      isolated(<<~RUBY)
        message = M.pack(Array.new(3000) { "value" * 10 })
        source = Object.new
        chunks = message.scan(/.{1,1000}/mn)
        source.define_singleton_method(:read) do |_ = nil|
          count = (@count = @count.to_i + 1)
          @unpacker.#{action} if count == 5
          chunks.shift
        end
        unpacker = M::Unpacker.new(source)
        source.instance_variable_set(:@unpacker, unpacker)
        attempt { unpacker.read }
        attempt { unpacker.read_array_header }
        attempt { unpacker.each { |object| object } }
      RUBY
    end
  end

  # Callbacks of a packer: to_msgpack, the callables of types, an IO to write to.
  {
    "reset" => "packer.reset", "full_pack" => "packer.full_pack", "write" => "packer.write('y' * 100_000)",
    "buffer_clear" => "packer.buffer.clear", "buffer_write" => "packer.buffer << 'y' * 100_000",
    "to_s" => "packer.to_s", "register" => "30.times { |n| packer.register_type(n + 3, Class.new) { 'z' } }",
    "initialize" => "packer.send(:initialize, StringIO.new)", "raise" => "raise 'stop'",
    "list_clear" => "LIST.clear; GC.start", "hash_clear" => "HASH.clear; GC.start",
    "hash_grow" => "1000.times { HASH[_1] = 1 }"
  }.each do |name, action|
    define_method(:"test_packing_calls_#{name}") { isolated(packing_that_calls(action)) }
  end

  def test_a_payload_that_is_made_late
    isolated(<<~RUBY)
      late = Object.new
      packer = nil
      late.define_singleton_method(:to_str) { packer.reset; packer.write("y" * 100_000); "payload" }
      packer = M::Packer.new
      packer.write("before")
      attempt { packer.write_ext(1, late) }
      attempt { packer.register_type(1, Key) { late }; packer.write([Key.new(1)] * 10) }
      attempt { packer.buffer.write(late) }
      unpacker = M::Unpacker.new
      late.define_singleton_method(:to_str) { unpacker.reset; unpacker.feed("y" * 100_000); "\\x93\\x01\\x02" }
      unpacker.feed("\\x93")
      attempt { unpacker.feed(late) }
      attempt { unpacker.feed_each(late) { 1 } }
      attempt { unpacker.each { unpacker.reset } }
      attempt { unpacker.feed("\\x01" * 100); unpacker.each { unpacker.feed("\\x02" * 1000) if rand < 0.001 } }
    RUBY
  end

  # An object whose conversion changes the Array that contains it.
  def test_conversions_that_change_the_arguments
    isolated(<<~RUBY)
      list = []
      spoil = -> { (list.clear; 100.times { Array.new(50, "junk") }; GC.start) if list.any? }
      odd = Object.new
      odd.define_singleton_method(:to_int) { spoil.call; 1 }
      odd.define_singleton_method(:to_str) { spoil.call; "<|endoftext|>" }
      odd.define_singleton_method(:to_s) { spoil.call; "key" }
      fill = -> { list.replace([odd] * 5_000) }
      encoding = Offlock::Tiktoken.get_encoding(:gpt2)
      calls = [
        -> { Offlock::Strings.from_offsets("text" * 100, list) },
        -> { encoding.decode(list) },
        -> { encoding.encode_batch(list) },
        -> { encoding.count_batch(list, threads: 2) },
        -> { encoding.encode("text", allowed_special: list) },
        -> { Offlock::Zlib.deflate_all(list) },
        -> { M.unpack_all(list) },
        -> { M.extract(M.pack([{ "key" => "x" }]), *list) }
      ]
      calls.each { |call| fill.call; attempt(&call) }
    RUBY
  end

  def test_a_progress_callback_that_changes_the_inputs
    assert_equal "true", isolated(<<~RUBY)
      list = Array.new(500) { |n| "text \#{n} " * 20_000 }
      copies = list.map(&:dup)
      progress = ->(*) { list.each { |string| string.clear }; list.clear; Offlock::Zlib.deflate_all(["a"] * 10); GC.start }
      packed = Offlock::Zlib.deflate_all(list, progress:)
      print Offlock::Zlib.inflate_all(packed) == copies
    RUBY
  end

  def test_streams_that_are_used_within_their_own_blocks
    isolated(<<~RUBY)
      zlib = Offlock::Zlib
      text = Random.new(1).bytes(300_000)
      deflate = zlib::Deflate.new
      within = -> { [-> { deflate.reset }, -> { deflate.deflate("x" * 100_000) { 1 } }].each { |call| attempt(&call) } }
      attempt { deflate.deflate(text, zlib::FINISH) { |_| within.call } }
      attempt { deflate.close }
      inflate = zlib::Inflate.new
      packed = zlib.deflate(text)
      attempt { inflate.inflate(packed) { |_| attempt { inflate.reset }; attempt { inflate << packed }; attempt { inflate.close } } }
      attempt { zlib.inflate(packed) { |chunk| chunk.clear; GC.start } }
      reader = nil
      source = StringIO.new(zlib.gzip("line\\n" * 50_000))
      depth = 0
      source.define_singleton_method(:read) do |*arguments|
        depth += 1
        attempt { reader&.read } && attempt { reader&.rewind } if depth == 3
        super(*arguments)
      end
      reader = zlib::GzipReader.new(source)
      attempt do
        reader.each_line.with_index do |line, index|
          attempt { reader.rewind if index == 3000 }
          line.clear
          break if index > 60_000
        end
      end
    RUBY
  end

  def test_finalizers_and_weak_references
    isolated(<<~RUBY)
      unpacker = M::Unpacker.new
      message = M.pack(Array.new(2000) { { "a" => "b" * 50, [_1] => nil } })
      GC.stress = false
      200.times { ObjectSpace.define_finalizer(Object.new, proc { unpacker.reset; unpacker.feed("q" * 1000) }) }
      20.times do
        unpacker.feed(message)
        attempt { unpacker.read }
        unpacker.reset
        ObjectSpace.define_finalizer(Object.new, proc { unpacker.feed("q" * 1000) })
        GC.start
      end
    RUBY
  end

  # Entries before the object are written first, in one go. Entries after it are written as they were at that time.
  def test_objects_that_change_the_hashes_they_are_in
    assert_equal "true", isolated(<<~RUBY)
      Own = Class.new { def to_msgpack(packer) = ($hook&.call; packer.write("own")) }
      results = [5, 31, 32, 33, 40, 5_000].product([0.0, 0.3, 1.0], [false, true]).map do |size, place, within|
        inner = (0...size).to_h { |n| ["key \#{n}", n] }
        inner["key \#{(size * place).floor}"] = Own.new
        outer = within ? (0...50).to_h { |n| [n, "value"] }.merge("inner" => inner, "last" => [{ "list" => inner }]) : inner
        expected = M.unpack(M.pack(outer))
        round = 0
        $hook = lambda do
          [outer, inner].each { |hash| hash["new \#{round += 1}"] = 1 } if round < 2
          3.times { inner.shift } if round < 3 && inner.size > 100
          GC.start
        end
        packed = M.pack(outer)
        $hook = nil
        round == 2 && M.unpack(packed).then { |found| within ? found["inner"] == expected["inner"] : found == expected }
      end
      print results.uniq == [true] || results
    RUBY
  end

  def test_other_threads_get_keys_into_a_hash_that_is_packed
    assert_equal "[true, true]", isolated(<<~RUBY)
      hash = (0...1_000_000).to_h { |n| ["key \#{n}", { "n" => n }] }
      added = 0
      stop = false
      writer = Thread.new do
        until stop
          hash["new \#{added += 1}"] = nil
          sleep(0.0002)
        end
      end
      sizes = Array.new(3) { [hash.size, M.unpack(M.pack("all" => hash))["all"].size, hash.size] }
      stop = true
      writer.join
      print [sizes.all? { |before, packed, after| packed.between?(before, after) }, sizes.any? { |before, _, after| after > before + 20 }]
    RUBY
  end

  # Long messages release the lock in the middle.
  def test_other_threads_change_the_inputs
    isolated(<<~RUBY)
      message = M.pack(Array.new(200_000) { { "a" => _1 } })
      objects = M.unpack(message)
      text = +"some words, and others\\n" * 500_000
      unpacker = M::Unpacker.new
      packer = M::Packer.new
      stop = false
      spoiler = Thread.new do
        until stop
          unpacker.feed("x" * 1000)
          unpacker.reset
          packer.reset
          objects.sample&.merge!("new \#{rand(100)}" => 1)
          objects.pop
          text << "more"
          message.setbyte(5, 0) if message.bytesize > 5
          ObjectSpace.each_object(String) { |string| string.clear if string.bytesize > 1_000_000 && !string.frozen? } if rand < 0.2
          sleep(0.0005)
        end
      end
      pieces = Array.new(100_000) { "piece \#{_1}" }
      packed = Offlock::Zlib.deflate("some text " * 3_000_000).freeze
      long = Array.new(4) { "long text " * 1_000_000 }
      long_message = M.pack(long + [long[0].b]).freeze
      3.times do
        attempt { unpacker.feed(message) && unpacker.read }
        attempt { unpacker.feed(message) && unpacker.each { |object| object } }
        attempt { M.pack(objects) }
        attempt { packer.write(objects) && packer.full_pack }
        attempt { M.unpack(message.dup) }
        attempt { M.pack(long.map(&:dup)) }
        attempt { packer.write(long.map(&:dup)) && packer.to_s }
        attempt { M.unpack(long_message) }
        attempt { unpacker.feed(long_message) && unpacker.read }
        attempt { Offlock::Strings.split(text, ",") }
        attempt { M.unpack_all([message] * 3) }
        attempt { Offlock::Zlib.inflate(packed) }
        attempt { Offlock::Tiktoken.get_encoding(:gpt2).encode_batch(pieces) }
      end
      stop = true
      spoiler.join
    RUBY
  end
end
