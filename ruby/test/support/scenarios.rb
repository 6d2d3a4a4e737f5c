# frozen_string_literal: true

require "json"
require "stringio"
require "tmpdir"
require "offlock/message_pack/bigint"

# Small programs that together call every public method of JSONL, MessagePack, Pipeline, Strings, Tiktoken, Tokenizer,
# Tokenizers and Zstd, each with inputs of `n` items that are not frozen. Their results do not depend on when garbage is
# collected.
module Scenarios
  M = Offlock::MessagePack

  Point = Struct.new(:x, :y) do
    def to_msgpack_ext = [x, y].pack("l>l>")

    def self.from_msgpack_ext(data) = new(*data.unpack("l>l>"))
  end

  # Too long to be embedded in the object.
  PADDING = "words é and more " * 15

  module_function

  # Made once, because each object costs a collection.
  SAMPLES = Ractor.make_shareable(Array.new(300) { |n| "{\"id\": #{n * 7919 % 1009}, \"text\": \"#{n}\"}" })

  def long(number) = "#{number} #{PADDING}"

  # The tokens and numbers of a stream that gets a text in pieces.
  def streamed(stream, text)
    length = (text.bytesize / 3) + 1
    pieces = 0.step(text.bytesize, length).map { |at| text.byteslice(at, length) }
    made = pieces.map { |piece| stream.feed(piece, packed: piece.bytesize.even?, release: :always) }
    stream << +"é end "
    [made, stream.count("é".encode("UTF-16LE")), stream.total, stream.pending, stream.final_count, stream.inspect, stream.finish]
  end

  # The numbers of a run of the pipeline, with all but the paths, which differ from run to run.
  def summary_of(summary)
    shards = summary.shards.flat_map do |shard|
      [shard.inspect, shard.path, shard.documents, shard.bytes, shard.tokens, shard.failed, *shard.files]
    end
    [summary.documents, summary.bytes, summary.tokens, summary.failed, summary.resumed, summary.longest, summary.percentile(50),
     summary.inspect, *errors_of(summary.failures), *shards]
  end

  def errors_of(failures) = failures.flat_map { [_1.path, _1.record, _1.offset, _1.message] }

  def batch_of(batch)
    [batch.path, batch.size, batch.bytes, batch.failed, *errors_of(batch.failures), batch.packed, batch.offsets, batch.records,
     batch.to_a, batch.inspect]
  end

  # What every method of a reader returns.
  def read_with_zstd(data)
    reader = Offlock::Zstd::StreamReader.new(StringIO.new(data), external_encoding: "UTF-8")
    bytes = [reader.getbyte, reader.readbyte, reader.getc, reader.readchar, reader.read(10), reader.readpartial(5)]
    reader.ungetbyte(65)
    reader.ungetc(+"é")
    lines = [reader.gets, reader.readline, reader.lineno, reader.lineno = 7, reader.eof, reader.eof?, reader.pos, reader.tell]
    all = %i[readlines each_line each each_byte each_char].map do |name|
      reader.rewind
      reader.public_send(name).first(20) # each object costs a collection, and there may be thousands of characters
    end
    ends = [reader.read, reader.external_encoding, reader.to_io.class, reader.closed?, reader.finish.class, reader.close]
    [bytes, lines, all, ends]
  end

  def objects(count) = Array.new(count) { |n| { "id" => n, :name => long(n), "list" => [n, 1.5, nil, true, 2**40, "b\xFF".b] } }

  def factory
    M::Factory.new.tap do |factory|
      factory.register_type(1, Point)
      factory.register_type(2, Range, packer: ->(range, packer) { packer.write([range.first, range.last]) },
                                      unpacker: ->(unpacker) { Range.new(*unpacker.read) }, recursive: true)
      factory.register_type(3, Symbol)
      factory.register_type(4, Integer, packer: M::Bigint.method(:to_msgpack_ext), unpacker: M::Bigint.method(:from_msgpack_ext),
                                        oversized_integer_extension: true)
      factory.register_type(-1, Time, packer: M::Time::Packer, unpacker: M::Time::Unpacker)
    end
  end

  # The bytes are tokens, and so are these.
  JOINED = %w[wo rd word an and].freeze
  RANKS = [*(0..255).map { [_1].pack("C") }, *JOINED].map.with_index { |token, id| "#{[token].pack("m0")} #{id}\n" }.join.freeze
  MODEL = begin
    printable = [*0x21..0x7e, *0xa1..0xac, *0xae..0xff]
    letters = (printable + (0x100..0x143).to_a).map { [_1].pack("U") }
    merges = [%w[w o], %w[r d], %w[wo rd], %w[a n], %w[an d]]
    added = { content: "<s>", special: true, normalized: false, lstrip: false, rstrip: true, single_word: false }
    JSON.generate({ added_tokens: [added], normalizer: { type: "NFC" },
                    pre_tokenizer: { type: "ByteLevel", add_prefix_space: true }, decoder: { type: "ByteLevel" },
                    model: { type: "BPE", vocab: (letters + JOINED).each_with_index.to_h, merges: } }).freeze
  end

  def extended(count)
    Array.new(count) do |n|
      [Point.new(n, -n), n..(n + 1), :"name#{n}", 2**80 + n, Time.at(n, n, :nsec), { Point.new(n, 1) => long(n) }]
    end
  end

  TABLE = {
    "whole messages" => lambda do |n|
      message = M.pack(objects(n))
      [M.dump(n), M.unpack(message), M.load(message, symbolize_keys: true, freeze: true), M.unpack(message, release: :always),
       M.unpack(message, release: :never), M.unpack(M.pack((0...n).to_h { [[_1], long(_1)] }))]
    end,
    "many messages" => lambda do |n|
      messages = Array.new(n) { |number| M.pack([number, long(number)]) }
      [M.unpack_all(messages), M.unpack_all(messages, release: :always), M.unpack_all(Array.new(n) { M.pack(_1) }).sum]
    end,
    "parts of messages" => lambda do |n|
      message = M.pack(objects(n))
      view = M.view(message)
      fields = view[0]
      [M.extract(message, "name"), M.extract(message, :name, release: :always), view.size, view.length, view.array?, view.hash?,
       fields.keys, fields.key?("id"), fields["name"], fields.fetch("none") { |key| key * 2 },
       view.dig(0, "list", 5), view.each(&:size).inspect,
       view.map { |item| item["name"] }, view.build, view.inspect]
    end,
    "a packer" => lambda do |n|
      packer = M::Packer.new
      packer.write_array_header(1 + n).write_map_header(1).write_symbol(:key).write_bin_header(2)
      packer.buffer << "xy"
      objects(n).each { |object| packer.write(object) }
      before = [packer.size, packer.empty?, packer.to_s, packer.to_str, packer.to_a, packer.compatibility_mode?]
      packer.clear
      packer.write_nil.write_true.write_false.write_float(1.5).write_float32(0.5).write_int(2**60).write_string(long(1))
      packer.write_bin("bytes".b).write_array(objects(n)).write_hash(objects(1)[0]).pack(nil)
      packer.write_extension(M::ExtensionValue.new(7, "seven")).write_ext(8, long(8))
      io = StringIO.new
      [before, packer.write_to(io), io.string, packer.write(1).full_pack, M::Packer.new(io).write(long(2)).flush.reset, io.string]
    end,
    "an unpacker" => lambda do |n|
      message = M.pack(objects(n))
      unpacker = M::Unpacker.new(symbolize_keys: true, allow_unknown_ext: true)
      options = [unpacker.symbolize_keys?, unpacker.freeze?, unpacker.allow_unknown_ext?]
      read = [unpacker.feed(message).read, unpacker.feed_reference(message + message).unpack, unpacker.full_unpack]
      unpacker.feed(message * 2).skip
      parts = [unpacker.skip_nil, unpacker.read_array_header, unpacker.read_map_header, unpacker.read]
      unpacker.reset
      each = []
      unpacker.feed_each(message[0, 100]) { |object| each << object }
      unpacker.feed(message[100..]).each { |object| each << object }
      value = unpacker.feed(M::Packer.new.write_ext(9, long(9)).to_s).read
      from_io = M::Unpacker.new(StringIO.new(message * 3), key_cache: true).each.to_a
      [options, read, parts, each, value.type, value.payload, from_io]
    end,
    "a buffer" => lambda do |n|
      io = StringIO.new("input " * n)
      buffer = M::Buffer.new(io)
      n.times { |number| buffer << long(number) }
      buffer.write("more")
      buffer.append(long(1))
      shown = [buffer.size, buffer.empty?, buffer.to_s, buffer.to_str, buffer.to_a]
      shown += [buffer.read(10), buffer.read_all(20), buffer.skip(5)]
      rest = [buffer.skip_all(6).size, buffer.read, buffer.io.equal?(io)]
      out = StringIO.new
      buffer << long(2)
      written = [buffer.write_to(out), out.string, buffer.flush.size, buffer.clear]
      [shown, rest, written, buffer.close]
    end,
    "a factory" => lambda do |n|
      made = factory
      given = extended(n)
      bytes = made.dump(given)
      pool = made.pool(2, symbolize_keys: true)
      copy = made.dup.freeze
      packer = copy.packer
      unpacker = copy.unpacker
      [packer, unpacker].each(&:registered_types)
      packer.register_type(9, Exception, &:message)
      packer.register_type(10, Regexp, :source)
      unpacker.register_type(9) { |data| "error #{data}" }
      unpacker.register_type(10, Regexp, :new)
      own = packer.write([StandardError.new(long(1)), /abc/] * n).full_pack
      [made.load(bytes) == given, made.unpack(bytes) == given, made.pack(given) == bytes, pool.load(pool.dump(given)) == given,
       pool.packer { |one| one.write(given).full_pack } == bytes, pool.unpacker { |one| one.feed(bytes).read } == given,
       made.registered_types.size, made.type_registered?(Point), copy.packer.type_registered?(1), unpacker.type_registered?(9),
       unpacker.feed(own).read]
    end,
    "points in time" => lambda do |n|
      Array.new(n) do |number|
        stamp = M::Timestamp.new(number, number)
        again = M::Timestamp.from_msgpack_ext(stamp.to_msgpack_ext)
        [again == stamp, again.sec, again.nsec, M::Timestamp.to_msgpack_ext(number, 1),
         M::Bigint.from_msgpack_ext(M::Bigint.to_msgpack_ext(-(2**70) - number))]
      end
    end,
    "strings" => lambda do |n|
      text = Array.new(n) { |number| long(number) }.join("\n")
      strings = Offlock::Strings
      parts = text.lines.map(&:bytesize).each_with_object([0]) { |size, offsets| offsets << (offsets.last + size) }
      [strings.lines(text), strings.lines(+"é\n" * n, chomp: true, release: :always), strings.split(text, +"\n"),
       strings.lines(text.encode("UTF-16LE")), strings.split(text, "words", release: :always),
       strings.from_offsets(text, parts), strings.from_offsets(text, parts.pack("q*"), release: :always),
       strings.compact(strings.lines(text)), strings.compact(strings.lines(text.encode("ISO-8859-15"), chomp: true))]
    end,
    "tokens" => lambda do |n|
      encoding = Offlock::Tiktoken.get_encoding("gpt2")
      text = Array.new([n / 10, 1].max) { |number| long(number) }.join
      texts = Array.new(n) { |number| "text #{number} é" } << text.encode("UTF-16LE")
      tokens = encoding.encode(text)
      packed = encoding.encode(text, packed: true, release: :always)
      [tokens, packed, encoding.encode("a<|endoftext|>", allowed_special: [+"<|endoftext|>"]), encoding.encode_ordinary(text[0, 50]),
       encoding.encode_with_special_tokens("<|endoftext|>"), encoding.encode_batch(texts), encoding.count(text),
       encoding.encode_batch(texts, packed: true, threads: 2, release: :always), encoding.count_batch(texts, threads: 2),
       encoding.truncate(text, 5), encoding.chunks(text, 5, overlap: 1, boundary: :word).map { [_1.text, _1.range, _1.tokens] },
       streamed(encoding.stream(allowed_special: [+"<|endoftext|>"], limit: n * 1000), text),
       encoding.decode(tokens), encoding.decode(packed, errors: :replace), encoding.decode_bytes(tokens),
       encoding.encode_single_token("hello"), encoding.decode_single_token_bytes(31_373)]
    end,
    "a model's tokenizer" => lambda do |n|
      model = Offlock::Tokenizer.from_bytes(MODEL.dup)
      text = Array.new([n / 10, 1].max) { |number| "#{long(number)}<s> e\u0301" }.join
      texts = Array.new(n) { |number| "text #{number} é" } << text.encode("UTF-16LE")
      tokens = model.encode(text)
      [tokens, model.encode(text, packed: true, release: :always), model.encode_with_offsets(text),
       model.encode_with_offsets(+"<s> é", unit: :bytes, split_special_tokens: true, release: :always),
       model.encode_batch(texts), model.encode_batch(texts, packed: true, threads: 2, release: :always), model.count(text),
       model.count_batch(texts, threads: 2, release: :always), model.truncate(text, 50, release: :always), model.decode(tokens),
       model.chunks(text, 9, overlap: 2).map { [_1.text, _1.range, _1.tokens] },
       streamed(model.stream, text),
       model.decode(tokens.pack("L*"), release: :always), model.decode([0xff], errors: :replace), model.decode_bytes(tokens),
       model.vocab_size, model.added_tokens, model.id_to_token(260), model.token_to_id(+"and"), model.inspect,
       model.dup.equal?(model), model.clone.equal?(model)]
    end,
    "the gem's calls for a tokenizer" => lambda do |n|
      given = Offlock::Tokenizers::Tokenizer.from_str(MODEL.dup)
      token = given.added_tokens_decoder.each_value.first
      facts = [given.vocab(with_added_tokens: false).size, given.vocab_size, given.num_special_tokens_to_add(false), given.inspect,
               given.token_to_id(+"and"), given.id_to_token(260), token.content, token.single_word, token.lstrip, token.rstrip,
               token.normalized, token.special]
      texts = Array.new(n) { |number| "and #{number} é" }
      settings = [given.enable_truncation(5, stride: 1), given.enable_padding(length: 8), given.truncation, given.padding]
      encodings = [given.encode(texts.last), *given.encode_batch(texts.last(9)), *given.encode_batch_fast(texts.last(9))]
      made = [encodings.first, *encodings.first.overflowing].map do |one|
        [one.ids, one.tokens, one.offsets, one.type_ids, one.special_tokens_mask, one.attention_mask, one.sequence_ids, one.size,
         one.n_sequences, one.inspect, one.token_to_sequence(0), one.token_to_chars(0), one.char_to_token(3), one.to_s, one.length]
      end
      [facts, settings, made, given.no_truncation, given.no_padding, given.decode_batch(encodings.map(&:ids)),
       given.decode(encodings.first.ids)]
    end,
    "a tokenizer.json in a folder" => lambda do |_|
      Dir.mktmpdir do |folder|
        File.write("#{folder}/tokenizer.json", MODEL)
        one = Offlock::Tokenizers
        [one.from_file("#{folder}/tokenizer.json").vocab_size, one.from_pretrained(folder).vocab_size]
      end
    end,
    "a file of ranks" => lambda do |n|
      Dir.mktmpdir do |folder|
        File.write("#{folder}/own.tiktoken", RANKS)
        model = Offlock::Tokenizer.new(folder, pattern: '\p{L}+|\P{L}+', special_tokens: { +"<end>" => 300 })
        [model.encode("#{"words and " * n}<end>"), model.added_tokens]
      end
    end,
    "Zstandard" => lambda do |n|
      zstd = Offlock::Zstd
      text = Array.new(n) { long(_1) }.join("\n")
      packed = zstd.compress(text, level: 5, checksum_flag: true)
      framed = zstd.write_skippable_frame(packed, long(1), magic_variant: 3)
      info = zstd.frame_info(packed)
      [zstd.zstd_version, packed, zstd.decompress(framed * 2, max_output: 10**9, release: :always), zstd.frame_size(framed),
       info.decompressed_size, info.dictionary_id, zstd.read_skippable_frame(framed), zstd.compress(text, release: :always)]
    end,
    "Zstandard dictionaries" => lambda do |n|
      zstd = Offlock::Zstd
      samples = SAMPLES
      dict = zstd.train_dict(samples, 2000)
      final = zstd.finalize_dict(dict, samples, 3000, level: 5)
      dicts = [+"raw content", dict, final, zstd::CDict.new(dict.dict_content, 9), zstd::DDict.new(dict.dict_content)]
      packed = dicts.map { zstd.compress(long(n), dict: _1) }
      [dict.dict_id, dict.bytesize, dict.inspect, dict.dup.equal?(dict), dict.clone.equal?(dict), final.dict_content, packed,
       packed.zip(dicts).map { |data, with| zstd.decompress(data, dict: with) }]
    end,
    "Zstandard streams" => lambda do |n|
      zstd = Offlock::Zstd
      stream = zstd::StreamingCompress.new(level: 1, dict: +"raw content")
      stream.pledged_size = nil
      packed = stream.compress(long(1))
      stream.write(long(2), +"é")
      stream << long(3)
      stream.print(1, long(4))
      stream.puts([long(5), 5])
      stream.printf("%s", long(6))
      packed << stream.flush << stream.compress(long(7) * n) << stream.finish
      reader = zstd::StreamingDecompress.new(dict: +"raw content", max_output: 10**9)
      plain = [reader.decompress(packed[0, 20], max_length: 10), reader.needs_input?]
      plain << reader.decompress(packed[20, 30])
      plain << reader.decompress_with_pos(packed[50..] + packed) << reader.finished?
      [packed, plain, reader.decompress(packed)]
    end,
    "a Zstandard file" => lambda do |n|
      zstd = Offlock::Zstd
      io = StringIO.new(String.new)
      file = zstd::StreamWriter.new(io, level: 1)
      file.sync = n.odd?
      file.write(long(1), 1)
      n.times { file << long(_1) << "\n" }
      file.print(long(2), 2)
      file.puts(long(3), [3])
      file.printf("%s", long(4))
      file.putc("x")
      shown = [file.sync, file.pos, file.tell, file.to_io.equal?(io), file.flush.closed?, file.finish.equal?(io), file.close]
      [shown, io.string, *read_with_zstd(io.string)]
    end,
    "a Zstandard file at a path" => lambda do |n|
      Dir.mktmpdir do |folder|
        path = File.join(folder, "a.zst")
        [Offlock::Zstd::StreamWriter.open(path) { |file| file.write(long(1) * n) },
         Offlock::Zstd::StreamReader.open(path, &:read)]
      end
    end,
    "JSON lines" => lambda do |n|
      lines = Array.new(n) { JSON.generate({ "text" => long(_1), "id" => _1, "by" => { "name" => "\n" } }) }.join("\n")
      broken = begin
        Offlock::JSONL.extract(lines + "\n{", "id")
      rescue Offlock::JSONL::DecodeError => e
        [e.message, e.line, e.offset]
      end
      [Offlock::JSONL.extract(lines, [:id, "text", %w[by name], "none"], release: :always), broken]
    end,
    "a pipeline" => lambda do |n|
      Dir.mktmpdir do |folder|
        File.write("#{folder}/a.jsonl", Array.new(n) { JSON.generate({ "text" => long(_1) }) }.join("\n") << "\n{}")
        corpus = Offlock::Pipeline.read([+folder], format: :jsonl, on_error: :report, threads: 2).field(+"text")
        tokens = corpus.tokens("gpt2")
        counted = tokens.count(progress: ->(_, total) { total })
        outcome = [corpus.paths.size, corpus.size, corpus.inspect, tokens.name, tokens.inspect, *summary_of(counted),
                   *summary_of(tokens.write(File.join(folder, "out"), output: :llmc)),
                   *batch_of(tokens.first)]
        batches = tokens.batches
        outcome.push(batches.bytes_total, batches.next.size, batches.bytes_read, batches.inspect, batches.close)
        outcome.map { |value| value.is_a?(String) ? value.gsub(folder, "") : value }
      end
    end,
    "encodings" => lambda do |_|
      tiktoken = Offlock::Tiktoken
      encoding = tiktoken.encoding_for_model(:"gpt-4o")
      [tiktoken.list_encoding_names, tiktoken.list_model_names, tiktoken::Encoding.for_name(:gpt2).name,
       tiktoken::Encoding.for_name_cached("gpt2").inspect, encoding.n_vocab, encoding.max_token_value, encoding.eot_token,
       tiktoken.num_tokens_from_messages([{ role: +"user", "content" => +"Hi" }], "gpt-4o"),
       encoding.special_tokens, encoding.dup.equal?(encoding), encoding.clone.equal?(encoding), tiktoken.get_encoding(:none)]
    end
  }.freeze
end
