# frozen_string_literal: true

require "fileutils"
require "json"
require "stringio"
require "tmpdir"
require_relative "scenarios"

# Operations that take some tenths of a second and make or read many objects.
module LargeOperations
  module_function

  # By name: a function that makes the input, and the operation.
  TABLE = {
    "Strings.lines" => [-> { "some words in a line\n" * 1_500_000 }, ->(text) { Offlock::Strings.lines(text) }],
    "Strings.split" => [-> { "some words in a line," * 1_500_000 }, ->(text) { Offlock::Strings.split(text, ",") }],
    "Strings.from_offsets" => [
      -> { ["some words" * 1_500_000, (0..1_500_000).map { _1 * 10 }] },
      ->((text, offsets)) { Offlock::Strings.from_offsets(text, offsets) }
    ],
    "Strings.from_offsets packed" => [
      -> { ["some words" * 1_500_000, (0..1_500_000).map { _1 * 10 }.pack("q*")] },
      ->((text, offsets)) { Offlock::Strings.from_offsets(text, offsets) }
    ],
    "Strings.compact" => [
      -> { Offlock::Strings.lines("some words in a line\n" * 1_500_000) }, ->(strings) { Offlock::Strings.compact(strings) }
    ],
    "MessagePack.pack" => [-> { maps }, ->(objects) { Offlock::MessagePack.pack(objects) }],
    "MessagePack.pack of a Hash" => [
      -> { { "a" => { 1 => maps }, "b" => maps.each_slice(2).to_a.to_h } }, ->(object) { Offlock::MessagePack.pack(object) }
    ],
    "MessagePack.pack of a long String" => [-> { "x" * 150_000_000 }, ->(text) { Offlock::MessagePack.pack(text) }],
    "Packer#write_bin" => [-> { "x".b * 150_000_000 }, ->(bytes) { Offlock::MessagePack::Packer.new.write_bin(bytes) }],
    "Packer" => [
      -> { maps }, ->(objects) { Offlock::MessagePack::Packer.new.write(objects).full_pack }
    ],
    "MessagePack.unpack" => [-> { message }, ->(bytes) { Offlock::MessagePack.unpack(bytes) }],
    "MessagePack.unpack of a long String" => [
      -> { Offlock::MessagePack.pack("x" * 150_000_000) }, ->(bytes) { Offlock::MessagePack.unpack(bytes) }
    ],
    "Unpacker#read of long binary data" => [
      -> { Offlock::MessagePack.pack("x".b * 150_000_000) }, ->(bytes) { Offlock::MessagePack::Unpacker.new.feed(bytes).read }
    ],
    "MessagePack.unpack under the lock" => [-> { message }, ->(bytes) { Offlock::MessagePack.unpack(bytes, release: :never) }],
    "Unpacker#read" => [-> { message }, ->(bytes) { Offlock::MessagePack::Unpacker.new.feed(bytes).read }],
    "Unpacker#each" => [-> { message }, ->(bytes) { Offlock::MessagePack::Unpacker.new.feed(bytes).each(&:size) }],
    "Unpacker#skip" => [-> { ("\xdd\x00\x98\x96\x80".b << ("\x01" * 10_000_000)) * 3 }, lambda do |bytes|
      unpacker = Offlock::MessagePack::Unpacker.new.feed(bytes)
      3.times { unpacker.skip }
    end],
    "MessagePack.unpack_all" => [
      -> { Array.new(600_000) { Offlock::MessagePack.pack([_1]) } }, ->(messages) { Offlock::MessagePack.unpack_all(messages) }
    ],
    "MessagePack.extract" => [-> { message }, ->(bytes) { Offlock::MessagePack.extract(bytes, "name") }],
    "JSONL.extract" => [-> { json_lines }, ->(lines) { Offlock::JSONL.extract(lines, %w[text id]) }],
    "MessagePack.view" => [-> { message }, ->(bytes) { Offlock::MessagePack.view(bytes).first }],
    "Zlib.deflate_all" => [-> { Array.new(300_000) { "text number #{_1}" } }, ->(texts) { Offlock::Zlib.deflate_all(texts) }],
    "Zlib.inflate_all" => [
      -> { Offlock::Zlib.deflate_all(Array.new(300_000) { "text number #{_1}" }) }, ->(all) { Offlock::Zlib.inflate_all(all) }
    ],
    "Zlib.deflate" => [-> { prose }, ->(text) { Offlock::Zlib.deflate(text, 1) }],
    "Zlib.deflate of random data" => [-> { noise }, ->(bytes) { Offlock::Zlib.deflate(bytes, 1) }],
    "Zlib.inflate" => [-> { Offlock::Zlib.deflate(prose, 1) }, ->(data) { 3.times { Offlock::Zlib.inflate(data) } }],
    "Zlib.gunzip" => [-> { Offlock::Zlib.gzip(prose, level: 1) }, ->(file) { 3.times { Offlock::Zlib.gunzip(file) } }],
    "Zlib.gzip" => [-> { noise }, ->(bytes) { Offlock::Zlib.gzip(bytes, level: 1) }],
    "Zlib.gunzip_all" => [
      -> { Offlock::Zlib.gzip(noise[0, 1 << 20], level: 0) * 100 }, ->(file) { Offlock::Zlib.gunzip_all(file) }
    ],
    "Zlib.crc32" => [-> { noise }, ->(bytes) { 50.times { Offlock::Zlib.crc32(bytes) } }],
    "Deflate#deflate" => [-> { noise }, ->(bytes) { Offlock::Zlib::Deflate.new(1).deflate(bytes, Offlock::Zlib::FINISH) }],
    "Inflate#inflate" => [
      -> { Offlock::Zlib.deflate(noise, 0) }, ->(data) { 3.times { Offlock::Zlib::Inflate.new.inflate(data) } }
    ],
    "GzipWriter#write" => [
      -> { prose[0, 30_000_000] }, ->(text) { Offlock::Zlib::GzipWriter.new(StringIO.new, 1).write(text) }
    ],
    "GzipReader#read" => [
      -> { Offlock::Zlib.gzip(noise, level: 0) }, ->(file) { Offlock::Zlib::GzipReader.new(StringIO.new(file)).read }
    ],
    "GzipReader#readlines" => [
      -> { Offlock::Zlib.gzip("\n" * 5_000_000) }, ->(file) { Offlock::Zlib::GzipReader.new(StringIO.new(file)).readlines }
    ],
    "Zstd.compress" => [-> { prose }, ->(text) { Offlock::Zstd.compress(text) }],
    "Zstd.compress of random data" => [-> { noise }, ->(bytes) { Offlock::Zstd.compress(bytes, level: 1) }],
    "Zstd.compress at a high level" => [-> { prose[0, 1_000_000] }, ->(text) { Offlock::Zstd.compress(text, level: 19) }],
    "Zstd.decompress" => [-> { Offlock::Zstd.compress(prose, level: 1) }, ->(data) { Offlock::Zstd.decompress(data) }],
    "Zstd.decompress of many frames" => [
      -> { Offlock::Zstd.compress(noise[0, 1 << 20], level: 1) * 100 }, ->(data) { Offlock::Zstd.decompress(data) }
    ],
    "Zstd::StreamingCompress#compress" => [
      -> { noise }, ->(bytes) { Offlock::Zstd::StreamingCompress.new(level: 1).compress(bytes) }
    ],
    "Zstd::StreamingCompress#write" => [
      -> { prose[0, 6_000_000].lines }, ->(lines) { Offlock::Zstd::StreamingCompress.new(level: 1).write(*lines) }
    ],
    "Zstd::StreamingDecompress#decompress" => [
      -> { Offlock::Zstd.compress(noise, level: 1) }, ->(data) { Offlock::Zstd::StreamingDecompress.new.decompress(data) }
    ],
    "Zstd::StreamReader#readpartial" => [-> { Offlock::Zstd.compress(noise, level: 1) }, lambda do |data|
      reader = Offlock::Zstd::StreamReader.new(StringIO.new(data))
      reader.readpartial until reader.eof?
    end],
    "Zstd::StreamReader#readlines" => [
      -> { Offlock::Zstd.compress("\n" * 5_000_000) },
      ->(data) { Offlock::Zstd::StreamReader.new(StringIO.new(data)).readlines }
    ],
    "Zstd.write_skippable_frame" => [
      -> { noise }, ->(bytes) { Offlock::Zstd.write_skippable_frame("", bytes) }
    ],
    "Zstd.read_skippable_frame" => [
      -> { Offlock::Zstd.write_skippable_frame("", noise) }, ->(data) { 3.times { Offlock::Zstd.read_skippable_frame(data) } }
    ],
    "Zstd.train_dict" => [
      -> { prose[0, 4_000_000].scan(/.{100}/m) }, ->(samples) { Offlock::Zstd.train_dict(samples, 50_000) }
    ],
    "Zstd.frame_size" => [
      -> { Offlock::Zstd.compress(noise, level: 1) }, ->(data) { 30.times { Offlock::Zstd.frame_size(data) } }
    ],
    "encode of blanks" => [-> { " " * 150_000_000 }, ->(text) { gpt2.encode(text) }],
    "encode" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.encode(text) }],
    "encode packed" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.encode(text, packed: true) }],
    "encode_batch" => [-> { Array.new(300_000) { "text number #{_1}" } }, ->(texts) { gpt2.encode_batch(texts) }],
    "count_batch" => [-> { Array.new(300_000) { "text number #{_1}" } }, ->(texts) { gpt2.count_batch(texts) }],
    "decode" => [-> { gpt2.encode("hello world and other words " * 500_000) }, ->(tokens) { gpt2.decode(tokens) }],
    "Tokenizer#encode" => [-> { "hello words and other words " * 300_000 }, ->(text) { model.encode(text) }],
    "Tokenizer#encode_with_offsets" => [
      -> { "hello words and other wörds " * 100_000 }, ->(text) { model.encode_with_offsets(text) }
    ],
    "Tokenizer#encode_batch" => [-> { Array.new(200_000) { "text number #{_1}" } }, ->(texts) { model.encode_batch(texts) }],
    "Tokenizer#count_batch" => [-> { Array.new(300_000) { "text number #{_1}" } }, ->(texts) { model.count_batch(texts) }],
    "Tokenizer#decode" => [-> { model.encode("hello words and other words " * 300_000) }, ->(tokens) { model.decode(tokens) }],
    "Tokenizer#chunks" => [-> { "hello words and other words " * 200_000 }, ->(text) { model.chunks(text, 100, overlap: 10) }],
    "Tokenizer#truncate" => [-> { "hello words and other words " * 500_000 }, ->(text) { model.truncate(text, 1 << 40) }],
    "Tokenizer.from_bytes" => [-> { many_ranks }, lambda do |ranks|
      Offlock::Tokenizer.from_bytes(ranks, pattern: '\p{L}+|\P{L}+')
    end],
    "truncate" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.truncate(text, 1 << 40) }],
    "Stream#feed" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.stream.feed(text) }],
    "Stream#feed packed" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.stream.feed(text, packed: true) }],
    "Stream#count" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.stream.count(text) }],
    "Stream#total" => [-> { gpt2.stream << ("ab" * 20_000_000) }, ->(stream) { stream.total }],
    "Stream#finish" => [-> { "ab" * 20_000_000 }, ->(letters) { (gpt2.stream << letters).finish }],
    "Pipeline::Tokens#count" => [-> { shard }, ->(path) { Offlock::Pipeline.read(path).tokens(:gpt2).count.tokens }],
    "Pipeline::Tokens#each" => [-> { shard }, ->(path) { Offlock::Pipeline.read(path).tokens(:gpt2).sum(&:size) }],
    "Pipeline::Batch#to_a" => [
      -> { Offlock::Pipeline.read(shard).tokens(:gpt2).first }, ->(batch) { 5.times { batch.to_a && batch.offsets } }
    ],
    "chunks" => [-> { "hello world and other words " * 500_000 }, ->(text) { gpt2.chunks(text, 100, overlap: 10) }]
  }.freeze

  def prose = @prose ||= Array.new(3_000_000) { |number| "words and number #{number * 7919 % 10_007}\n" }.join

  def json_lines = Array.new(1_000_000) { |number| "{\"id\":#{number},\"text\":\"a\\n#{number}\"}\n" }.join

  def noise = @noise ||= Random.new(1).bytes(120_000_000)

  def gpt2 = Offlock::Tiktoken.get_encoding(:gpt2)

  def model = @model ||= Offlock::Tokenizer.from_bytes(Scenarios::MODEL)

  # A file of documents.
  def shard
    @shard ||= begin
      lines = Array.new(60_000) { JSON.generate({ "text" => "document #{_1} #{"of many " * 50}" }) }
      path = File.join(Dir.mktmpdir("offlock-shards"), "a.jsonl")
      at_exit { FileUtils.rm_rf(File.dirname(path)) }
      File.write(path, lines.join("\n"))
      path
    end
  end

  # All bytes, and 300,000 other tokens.
  def many_ranks
    tokens = Array.new(300_256) { _1 < 256 ? [_1].pack("C") : _1.to_s(7) }
    tokens.map.with_index { |token, id| "#{[token].pack("m0")} #{id}\n" }.join
  end

  def maps = Array.new(600_000) { { "id" => _1, "name" => "n" } }

  def message = Offlock::MessagePack.pack(maps)
end
