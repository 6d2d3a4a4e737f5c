# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require "timeout"
require "zlib"
require_relative "test_helper"
require_relative "support/scenarios"

# Shards counted, written and read in batches, compared with the slow and obvious way.
class PipelineTest < Minitest::Test
  P = Offlock::Pipeline
  ENCODING = Offlock::Tiktoken.get_encoding("gpt2")
  TEXTS = Array.new(3000) { |number| "document #{number} of many, #{"blah " * (number % 50)}é\n" }.freeze

  def setup
    @folder = Dir.mktmpdir("offlock-pipeline")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def add(name, content)
    path = File.join(@folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.binwrite(path, content)
    path
  end

  def jsonl(texts)
    texts.map { |text| JSON.generate({ text: text }) }.join("\n")
  end

  def corpus
    add("corpus/a.jsonl.gz", Zlib.gzip(jsonl(TEXTS[0...1000])))
    add("corpus/b.msgpack", TEXTS[1000...2000].map { |text| Offlock::MessagePack.pack({ "text" => text }) }.join)
    add("corpus/c.jsonl", jsonl(TEXTS[2000..]))
    File.join(@folder, "corpus")
  end

  # A shard of about 20 MB, which takes a second to encode: its texts do not repeat words.
  def large
    chance = Random.new(7)
    letters = Array.new(256) { |number| (number % 10).zero? ? " " : (97 + (number % 16)).chr }.join
    add("large.jsonl", jsonl(Array.new(3000) { chance.bytes(7_000).tr("\0-\xFF".b, letters) }))
  end

  def threads_of_pipelines
    Dir["/proc/self/task/*/comm"].count do |path|
      File.read(path).start_with?("offlock-pipelin")
    rescue SystemCallError
      false
    end
  end

  def eventually(seconds = 5)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until yield
      flunk if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
      sleep 0.01
    end
  end

  def test_count
    shards = corpus
    [nil, 1, 3].each do |threads|
      summary = P.read(shards, threads: threads).tokens(:gpt2).count
      lengths = TEXTS.map { |text| ENCODING.encode(text).size }.sort
      assert_equal [3000, lengths.sum], [summary.documents, summary.tokens]
      assert_equal TEXTS.sum(&:bytesize), summary.bytes
      assert_equal [0, [], 0], [summary.failed, summary.failures, summary.resumed]
      assert_equal [lengths.last, lengths[1499]], [summary.longest, summary.percentile(50)]
      names = summary.shards.map { |shard| File.basename(shard.path) }
      assert_equal %w[a.jsonl.gz b.msgpack c.jsonl], names
      assert_equal summary.tokens, summary.shards.sum(&:tokens)
      assert_includes summary.inspect, "3000 documents"
    end
  end

  def test_batches
    shards = corpus
    expected = TEXTS.map { |text| ENCODING.encode(text) }
    [nil, 1, 3].each do |threads|
      lists = P.read(shards, threads: threads).tokens("gpt2").flat_map do |batch|
        tokens = batch.packed.unpack("L*")
        assert_equal batch.to_a, batch.offsets.each_cons(2).map { |from, to| tokens[from...to] }
        assert_equal batch.size, batch.records.size
        assert_predicate batch, :frozen?
        batch.to_a
      end
      assert_equal expected, lists
    end
  end

  def test_write_and_resume
    tokens = P.read(corpus).tokens(:gpt2)
    out = File.join(@folder, "out")
    summary = tokens.write(out, output: :nanogpt)
    assert_equal [["a.bin"], ["b.bin"], ["c.bin"]], summary.shards.map(&:files)
    expected = TEXTS[1000...2000].flat_map { |text| ENCODING.encode(text) << 50_256 }
    assert_equal expected, File.binread(File.join(out, "b.bin")).unpack("S*")
    assert_raises(ArgumentError) { tokens.write(out, output: :nanogpt) }
    assert_equal 3, tokens.write(out, output: :nanogpt, resume: true).resumed
    assert_equal summary.tokens - 3000, tokens.write("#{out}-none", output: :nanogpt, eos: :none).tokens
  end

  def test_parts_of_a_run
    tokens = P.read(corpus).tokens(:gpt2)
    whole = File.join(@folder, "whole")
    out = File.join(@folder, "out")
    tokens.write(whole, output: :megatron)
    [0, 1, 0].each_with_index do |index, at|
      summary = tokens.write(out, output: :megatron, part: [index, 2])
      assert_equal [2 - index, at == 2 ? 2 : 0], [summary.shards.size, summary.resumed]
    end
    refute_path_exists File.join(out, "manifest.json")
    assert_equal 3, tokens.write(out, output: :megatron, resume: true).resumed
    contents = ->(folder) { Dir[File.join(folder, "*.*")].to_h { |path| [File.basename(path), File.binread(path)] } }
    assert_equal contents[whole], contents[out]
    [[1, 1], [-1, 2], [0, 0]].each do |part|
      error = assert_raises(ArgumentError) { tokens.write(out, output: :megatron, part:) }
      assert_match(/part must be an index and a greater count/, error.message)
    end
    assert_raises(TypeError) { tokens.write(out, output: :megatron, part: [0]) }
  end

  def test_fields_formats_and_choices
    path = add("nested.jsonl", %({"data": {"text": "one two"}, "text": "three"}\n))
    corpus = P.read(path)
    assert_equal 2, corpus.field("data", :text).tokens(:gpt2).count.tokens
    assert_equal 1, corpus.tokens(:gpt2).count.tokens
    assert_equal File.size(path) - 1, P.read([path], format: :lines).tokens(:gpt2).count.bytes
    assert_equal [[path], File.size(path)], [corpus.paths, corpus.size]
    assert_equal %w[o200k_base cl100k_base], [corpus.tokens.name, corpus.tokens(model: "gpt-4").name]
  end

  def test_tables
    File.foreach(File.expand_path("../../vectors/parquet/files.jsonl", __dir__), encoding: "UTF-8") do |line|
      given = JSON.parse(line)
      path = add("part", [given["bytes"]].pack("H*"))
      there = given["texts"].compact
      tokens = P.read(path, on_error: :skip).tokens(:gpt2)
      assert_equal there.map { |text| ENCODING.encode(text) }, tokens.flat_map(&:to_a), given["name"]
      summary = tokens.count
      assert_equal [there.size, given["texts"].size - there.size], [summary.documents, summary.failed], given["name"]
    end
  end

  def test_tables_are_written
    shard = add("in/a.jsonl", %({"text": "one", "id": "two three"}\n{"text": "four", "id": 5}\n{"text": "six"}\n))
    out = File.join(@folder, "out")
    P.read(shard).tokens(:gpt2).write(out, output: :parquet)
    # The ids of documents are a column of texts, which can be read.
    tokens = P.read(out, format: :parquet, on_error: :report).field("id").tokens(:gpt2)
    assert_equal [ENCODING.encode("two three"), ENCODING.encode("5")], tokens.flat_map(&:to_a)
    error = tokens.count.failures.fetch(0)
    assert_equal [3, File.join(out, "a.parquet")], [error.record, error.path]
    assert_match(/record 3 \(in the page at byte \d+ of the file\)/, error.message)
    error = assert_raises(P::RecordError) { P.read(out).tokens(:gpt2).count }
    assert_match(/there is no column text, but id/, error.message)
    assert_nil error.record
  end

  def test_progress_is_told
    tokens = P.read(large, threads: 2).tokens(:gpt2)
    size = File.size(large)
    [-> { tokens.count(progress: _1) }, -> { tokens.write(File.join(@folder, "out"), output: :llmc, progress: _1) }].each do |call|
      told = []
      call.call(->(done, total) { told << [done, total, Thread.current] })
      assert_equal [[size, Thread.current]], told.map { |_, *rest| rest }.uniq
      assert_equal told.map(&:first).sort, told.map(&:first)
      assert_equal size, told.last.first
      assert_operator told.size, :>, 3
    end
  end

  def test_what_progress_raises_ends_the_run
    calls = 0
    assert_raises(ZeroDivisionError) { P.read(large).tokens(:gpt2).count(progress: ->(*) { 1 / (calls += 1).pred }) }
    assert_equal 1, calls
    assert_raises(NoMethodError) { P.read(large).tokens(:gpt2).count(progress: 7) }
  end

  def test_a_tokenizer_object_is_the_same_as_its_file
    file = add("tokenizer.json", Scenarios::MODEL)
    corpus = P.read(add("a.jsonl", %({"text": "word and word"})))
    tokenizer = Offlock::Tokenizer.new(file)
    loaded = corpus.tokens(tokenizer:)
    read = corpus.tokens(tokenizer: @folder)
    assert_equal "a tokenizer of #{tokenizer.vocab_size} tokens", loaded.name
    assert_equal [tokenizer.count("word and word")] * 2, [loaded.count.tokens, read.count.tokens]
    out = File.join(@folder, "out")
    loaded.write(out, output: :datatrove, eos: :none)
    # The checksum of the tokenizer is the same, so one can continue the run of the other.
    assert_equal 1, read.write(out, output: :datatrove, eos: :none, resume: true).resumed
    assert_raises(ArgumentError) { corpus.tokens(:gpt2).write(out, output: :datatrove, eos: :none, resume: true) }
  end

  def test_wrong_arguments
    corpus = P.read(add("a.jsonl", %({"text": "one"})))
    {
      "format must be :jsonl, :msgpack, :lines, :text, :parquet, got :csv" => -> { P.read(@folder, format: :csv).tokens },
      "on_error must be :fail, :skip, :report, got :no" => -> { P.read(@folder, on_error: :no).tokens },
      "max_doc_bytes must be at least 1, got 0" => -> { P.read(@folder, max_doc_bytes: 0) },
      "threads must be at least 1, got 0" => -> { P.read(@folder, threads: 0) },
      "gpt5: this encoding is not known" => -> { corpus.tokens("gpt5") },
      "only one of" => -> { corpus.tokens("gpt2", model: "gpt-4") },
      "output must be :megatron, " => -> { corpus.tokens.write("#{@folder}/out", output: :csv) },
      "eos must be :append, " => -> { corpus.tokens.write("#{@folder}/out", output: :llmc, eos: :both) },
      "percent must be between 0 and 100, got 101" => -> { corpus.tokens.count.percentile(101) },
      "field takes the keys" => -> { corpus.field }
    }.each do |message, call|
      assert_includes assert_raises(ArgumentError, message) { call.call }.message, message
    end
    assert_raises(Errno::ENOENT) { P.read(File.join(@folder, "none")) }
    assert_raises(Errno::ENOENT) { corpus.tokens(tokenizer: File.join(@folder, "none")) }
  end

  def test_records_that_fail
    path = add("a.jsonl", %({"text":"one"}\n{"text":5}\n{"text":"\xff"}\n{"text":"two"}))
    tokens = P.read(path).tokens(:gpt2)
    [-> { tokens.count }, -> { tokens.to_a }].each do |run|
      error = assert_raises(P::RecordError) { run.call }
      assert_equal [path, 2, 15], [error.path, error.record, error.offset]
      assert_includes error.message, "not a string but a number"
    end
    skipped = P.read(path, on_error: :skip).tokens(:gpt2).count
    assert_equal [2, []], [skipped.failed, skipped.failures]
    reported = P.read(path, on_error: :report).tokens(:gpt2)
    batch = reported.first
    assert_equal [[1, 4], 2], [batch.records, batch.failed]
    [reported.count.failures, batch.failures].each do |failures|
      assert_equal [[2, 15], [3, 26]], failures.map { |error| [error.record, error.offset] }
    end
  end

  def test_the_threads_end_with_the_batches
    tokens = P.read(large, threads: 3).tokens(:gpt2)
    before = threads_of_pipelines
    batches = tokens.batches
    assert batches.next
    assert_operator threads_of_pipelines, :>, before
    batches.close
    eventually { threads_of_pipelines == before }
    assert_nil batches.next
    tokens.each { break } # rubocop:disable Lint/UnreachableLoop
    eventually { threads_of_pipelines == before }
    assert_operator tokens.first(2).sum(&:size), :>, 0
    eventually { threads_of_pipelines == before }
  end

  def test_interrupts
    tokens = P.read(large).tokens(:gpt2)
    out = File.join(@folder, "out")
    [-> { tokens.count }, -> { tokens.write(out, output: :nanogpt) }, -> { tokens.to_a }].each do |run|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      assert_raises(Timeout::Error) { Timeout.timeout(0.1) { run.call } }
      assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :<, 0.6
    end
    assert_equal 3000, tokens.write(out, output: :nanogpt, resume: true).documents
  end

  def test_an_interrupt_that_raises_nothing_does_not_begin_anew
    tokens = P.read(large).tokens(:gpt2)
    runner = Thread.new { tokens.write(File.join(@folder, "out"), output: :nanogpt).documents }
    20.times do
      sleep 0.01
      runner.wakeup if runner.alive?
    end
    assert_equal 3000, runner.value
  end

  def test_other_threads_run_meanwhile
    tokens = P.read(large).tokens(:gpt2)
    ticks = 0
    ticker = Thread.new { loop { sleep(0.001) && ticks += 1 } }
    tokens.count
    ticker.kill
    assert_operator ticks, :>, 50
  end

  def test_ractors_share_tokens
    tokens = P.read(corpus).tokens(:gpt2)
    assert Ractor.shareable?(tokens)
    experimental = Warning[:experimental]
    Warning[:experimental] = false
    ractor = Ractor.new(tokens) { |own| own.sum(&:size) }
    assert_equal 3000, ractor.value
  ensure
    Warning[:experimental] = experimental
  end

  def test_the_child_of_a_fork_begins_anew
    tokens = P.read(large).tokens(:gpt2)
    batches = tokens.batches
    batches.next
    child = fork do
      began_anew = begin
        batches.next
        false
      rescue ArgumentError => e
        e.message.include?("begin anew")
      end
      batches.close
      exit!(began_anew && tokens.first.size.positive? ? 0 : 1)
    end
    assert_predicate Timeout.timeout(60) { Process.wait2(child) }.last, :success?
    assert batches.next
  end
end
