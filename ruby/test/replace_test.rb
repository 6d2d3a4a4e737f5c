# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "tmpdir"

# Tests "offlock/replace" and its parts: the originals' names refer to offlock's modules.
class ReplaceTest < Minitest::Test
  include Texts

  # The parts of the gems msgpack and tiktoken_ruby that matter here.
  ORIGINALS = {
    "msgpack.rb" => <<~RUBY,
      module MessagePack
        class UnpackError < StandardError; end
        class MalformedFormatError < UnpackError; end
        class Packer
          def initialize = @written = []
          attr_reader :written
          def write_array(array) = @written << [:array, array]
        end
        class Types
          def registered_types_internal
            packers = { Point => [5, ->(point, packer) { packer.write([point.x]) }, 1], Integer => [6, :to_s.to_proc, 0] }
            unpackers = { 5 => [Point, ->(unpacker) { Point.new(unpacker.read[0]) }, 1], 6 => [Integer, method(:Integer), 0],
                          7 => [Symbol, :to_sym.to_proc, 0] }
            [packers, unpackers]
          end
          private :registered_types_internal
        end
        Point = Struct.new(:x)
        DefaultFactory = Types.new
        module CoreExt
          def to_msgpack(*) = raise("the original's")
        end
        Array.include(CoreExt)
      end
      class Array
        private def to_msgpack_with_packer(_) = raise("the original's")
      end
    RUBY
    "msgpack/bigint.rb" => "raise 'the original was loaded'",
    "tiktoken_ruby.rb" => "module Tiktoken; class UnicodeError < StandardError; end; end"
  }.freeze

  PRELUDE = <<~'RUBY'
    def check(value, line = caller_locations[0]) = value || abort("wrong in #{line}")
  RUBY

  # Runs the program with the originals on the load path, and with warnings. It must print nothing.
  def assert_runs(program, environment = {})
    Dir.mktmpdir do |folder|
      ORIGINALS.each do |path, text|
        file = File.join(folder, path).tap { |name| FileUtils.mkdir_p(File.dirname(name)) }
        File.write(file, text)
      end
      paths = [folder, *$LOAD_PATH].flat_map { |path| ["-I", path] }
      command = [environment, RbConfig.ruby, "-w", *paths, "-e", "#{PRELUDE}\n#{program}", { err: %i[child out] }]
      output = IO.popen(command, &:read)
      assert_equal ["", true], [output, $CHILD_STATUS.success?], program
    end
  end

  def test_what_is_required_later_is_ours
    assert_runs(<<~RUBY)
      require "offlock/replace"
      %w[zlib msgpack msgpack/bigint msgpack/core_ext tiktoken_ruby].each { |name| check(!require(name)) }
      check [Zlib, MessagePack, Tiktoken].map(&:name) == %w[Offlock::Zlib Offlock::MessagePack Offlock::Tiktoken]
      check MessagePack.unpack([1, { "a" => nil }].to_msgpack) == [1, { "a" => nil }]
      check MessagePack::Bigint.from_msgpack_ext(MessagePack::Bigint.to_msgpack_ext(2**70)) == 2**70
      check Zlib.gunzip(Zlib.gzip("text")) == "text"
      check Tiktoken.get_encoding(:gpt2).decode([31373]) == "hello"
      check !require("offlock/replace/zlib")
    RUBY
  end

  def test_rubyopt_replaces_from_outside
    assert_runs('check !require("msgpack"); check MessagePack.equal?(Offlock::MessagePack); check Zlib.equal?(Offlock::Zlib)',
                { "RUBYOPT" => "-rofflock/replace" })
  end

  def test_a_program_that_replaces_the_load_path_gets_ours
    assert_runs(<<~RUBY)
      require "offlock/replace"
      $LOAD_PATH.reject! { |path| path.include?("replace") }
      check !require("msgpack") && !require("msgpack/bigint") && !require("tiktoken_ruby")
    RUBY
  end

  # Bootsnap requires files by the path that it found on the load path.
  def test_libraries_that_resolve_paths_find_the_replacement
    assert_runs(<<~RUBY)
      require "offlock/replace"
      %w[msgpack msgpack/bigint tiktoken_ruby].each { |name| require $LOAD_PATH.resolve_feature_path(name).last }
      check Tiktoken.equal?(Offlock::Tiktoken) && !MessagePack.const_defined?(:Types)
    RUBY
  end

  def test_one_alone_leaves_the_others
    { "zlib" => :Zlib, "msgpack" => :MessagePack, "tiktoken" => :Tiktoken }.each do |library, name|
      assert_runs(<<~RUBY)
        require "offlock/replace/#{library}"
        require "zlib"
        require "msgpack"
        require "tiktoken_ruby"
        ours = %i[Zlib MessagePack Tiktoken].select { |name| Object.const_get(name).equal?(Offlock.const_get(name)) }
        check ours == [:#{name}]
      RUBY
    end
  end

  def test_references_that_were_loaded_before_are_ours
    assert_runs(<<~RUBY)
      require "zlib"
      require "msgpack"
      require "tiktoken_ruby"
      def references = [Zlib, MessagePack, Tiktoken]
      def failing
        Zlib.inflate("no zlib")
      rescue Zlib::Error => e
        e
      end
      class Older < Zlib::Inflate; end
      before = references
      check failing.instance_of?(Zlib::DataError)
      require "offlock/replace"
      check references == [Offlock::Zlib, Offlock::MessagePack, Offlock::Tiktoken] && references != before
      check failing.message.include?("at byte") && failing.instance_of?(before[0]::DataError)
      check Older.inflate(Zlib.deflate("text")) == "text"
    RUBY
  end

  def test_exceptions_of_the_original_that_code_holds_rescue_ours
    assert_runs(<<~RUBY)
      require "msgpack"
      HELD = MessagePack::UnpackError
      class Derived < HELD; end
      original = MessagePack
      require "offlock/replace"
      begin
        MessagePack.unpack("\\xC1")
      rescue Derived
        check false
      rescue HELD => e
        check e.instance_of?(Offlock::MessagePack::MalformedFormatError)
      end
      check HELD === original::MalformedFormatError.new && !(HELD === ArgumentError.new)
    RUBY
  end

  def test_types_of_the_originals_default_factory_are_known
    assert_runs(<<~RUBY)
      require "msgpack"
      Point = MessagePack::Point
      require "offlock/replace/msgpack"
      check MessagePack.unpack(MessagePack.pack([Point.new(3), 1, 2**70])) == [Point.new(3), 1, 2**70]
      check MessagePack.unpack("\\xC7\\x01\\x07a") == :a
    RUBY
  end

  def test_packers_of_the_original_go_on
    assert_runs(<<~RUBY)
      require "msgpack"
      packer = MessagePack::Packer.new
      require "offlock/replace/msgpack"
      [1].to_msgpack(packer)
      check packer.written == [[:array, [1]]]
      check [1].to_msgpack == "\\x91\\x01".b
    RUBY
  end

  def test_a_constant_that_would_load_the_original_does_not
    assert_runs(<<~RUBY)
      autoload :MessagePack, "msgpack/bigint"
      require "offlock/replace/msgpack"
      check MessagePack.equal?(Offlock::MessagePack)
    RUBY
  end

  def test_other_threads_find_the_constant_at_all_times
    assert_runs(<<~RUBY)
      require "offlock"
      going = true
      thread = Thread.new { Zlib while going }
      require "offlock/replace"
      going = false
      thread.join
    RUBY
  end

  def test_ractors_use_ours
    assert_runs(<<~RUBY)
      require "offlock/replace"
      Warning[:experimental] = false
      ractor = Ractor.new { [MessagePack.unpack([1].to_msgpack), Zlib.inflate(Zlib.deflate("text"))] }
      check (RUBY_VERSION < "4" ? ractor.take : ractor.value) == [[1], "text"]
    RUBY
  end
end
