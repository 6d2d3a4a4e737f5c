# frozen_string_literal: true

require "json"
require_relative "../test_helper"

module MessagePackTests
  # Runs the vectors in vectors/msgpack.
  class VectorsTest < Minitest::Test
    MessagePack = Offlock::MessagePack
    FOLDER = File.expand_path("../../../vectors/msgpack", __dir__)

    def cases(name)
      File.readlines(File.join(FOLDER, name)).map { |line| JSON.parse(line) }
    end

    def factory
      factory = MessagePack::Factory.new
      factory.register_type(-1, MessagePack::Timestamp)
      factory
    end

    # Converts a value from the form of the vectors.
    def tagged(value)
      case value
      when nil, true, false then value
      when Integer then { "int" => value.to_s }
      when Float then { "float" => value.nan? ? "nan" : [value].pack("G").unpack1("H*") }
      when String then tagged_string(value)
      when Array then { "array" => value.map { |item| tagged(item) } }
      when Hash then { "map" => value.map { |key, item| [tagged(key), tagged(item)] } }
      when MessagePack::Timestamp then { "timestamp" => [value.sec, value.nsec] }
      when MessagePack::ExtensionValue then { "ext" => [value.type, value.payload.unpack1("H*")] }
      else raise value.class.name
      end
    end

    def tagged_string(string)
      return { "bin" => string.unpack1("H*") } if string.encoding == Encoding::BINARY

      string.valid_encoding? ? { "str" => string } : { "raw" => string.unpack1("H*") }
    end

    def untagged(value)
      return value unless value.is_a?(Hash)

      kind, value = value.first
      case kind
      when "int" then Integer(value)
      when "float" then [value].pack("H*").unpack1("G")
      when "str" then value
      when "bin" then [value].pack("H*")
      when "array" then value.map { |item| untagged(item) }
      when "map" then value.to_h { |pair| pair.map { |item| untagged(item) } }
      when "timestamp" then MessagePack::Timestamp.new(*value)
      when "ext" then MessagePack::ExtensionValue.new(value[0], [value[1]].pack("H*"))
      end
    end

    # A Hash keeps the last of equal keys, in the place of the first.
    def without_duplicates(value)
      return value unless value.is_a?(Hash)

      kind, inside = value.first
      case kind
      when "array" then { kind => inside.map { |item| without_duplicates(item) } }
      when "map" then { kind => inside.map { |pair| pair.map { |item| without_duplicates(item) } }.to_h.to_a }
      else value
      end
    end

    def test_values
      cases("values.jsonl").each do |test|
        message = [test["bytes"]].pack("H*")
        unpacked = factory.unpacker(allow_unknown_ext: true).feed(message).full_unpack
        assert_equal [without_duplicates(test["value"])], [tagged(unpacked)]
      end
    end

    def test_values_from_an_index
      cases("values.jsonl").each do |test|
        next if test["value"].to_s.include?("timestamp")

        message = [test["bytes"]].pack("H*")
        unpacked = MessagePack.unpack(message, allow_unknown_ext: true, release: :always)
        assert_equal [without_duplicates(test["value"])], [tagged(unpacked)]
      end
    end

    def test_values_in_pieces
      cases("values.jsonl").each do |test|
        message = [test["bytes"]].pack("H*")
        unpacker = factory.unpacker(allow_unknown_ext: true)
        message.chop.each_char do |byte|
          unpacker.feed(byte)
          assert_raises(EOFError) { unpacker.read }
        end
        assert_equal [without_duplicates(test["value"])], [tagged(unpacker.feed(message[-1]).read)]
      end
    end

    def test_packing
      cases("values.jsonl").select { |test| test["packs"] }.each do |test|
        packer = factory.packer
        value = untagged(test["value"])
        value.is_a?(MessagePack::ExtensionValue) ? packer.write_extension(value) : packer.write(value)
        assert_equal test["bytes"], packer.to_s.unpack1("H*")
      end
    end

    def test_broken_messages
      classes = { "truncated" => EOFError, "reserved" => MessagePack::MalformedFormatError,
                  "extra" => MessagePack::MalformedFormatError, "deep" => MessagePack::StackError }
      cases("broken.jsonl").each do |test|
        message = [test["bytes"]].pack("H*")
        %i[always never].each do |release|
          assert_raises(classes.fetch(test["error"]), test["bytes"]) do
            MessagePack.unpack(message, release: release, allow_unknown_ext: true)
          end
        end
      end
    end
  end
end
