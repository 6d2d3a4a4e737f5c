# frozen_string_literal: true

require_relative "../test_helper"

# Interrupted compression ends promptly.
class ZlibInterruptsTest < Minitest::Test
  include Texts

  CALLS = {
    deflate: "Z.deflate(text)",
    deflate_best: "Z.deflate(text, 9)",
    deflate_under_the_lock: "Z.deflate(text, release: :never)",
    deflate_object: "Z::Deflate.new.deflate(text)",
    deflate_all: "Z.deflate_all([text, text[0, 100]], threads: 2)",
    gzip: "Z.gzip(text)",
    gzip_writer: "Z::GzipWriter.new(StringIO.new).write(text)",
    gzip_writer_on_threads: "Z::GzipWriter.new(StringIO.new, threads: 2).write(text)",
    inflate: "Z.inflate(packed)",
    inflate_object: "Z::Inflate.new.inflate(packed)",
    inflate_all: "Z.inflate_all([packed, small], threads: 2)",
    inflate_all_second: "Z.inflate_all([small, packed], threads: 2)",
    gunzip: "Z.gunzip(packed_gzip)",
    gunzip_all: "Z.gunzip_all(members, threads: 2)",
    gzip_reader: "Z::GzipReader.new(StringIO.new(packed_gzip)).read"
  }.freeze

  SETUP = <<~'RUBY'
    require "stringio"
    Z = Offlock::Zlib
    text = Random.new(1).bytes(500_000).unpack1("H*") * 400
    maker = Z::Deflate.new(6, -15)
    part = maker.deflate(text[0, 16 << 20], Z::FULL_FLUSH)
    stream = lambda { |header| header.b + part * 40 + "\x03\0".b + "\0" * 8 }
    small, packed, packed_gzip = Z.deflate("small"), stream.("\x78\x9c"), stream.("\x1f\x8b\x08" + "\0" * 7)
    members = Z.gzip(text[0, 1 << 20]) * 600
    clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  RUBY

  # Interrupts each call several times in one process, as its inputs take seconds to make.
  PROGRAM = <<~RUBY.freeze
    #{SETUP}
    calls = {#{CALLS.map { |name, call| "#{name}: -> { #{call} }" }.join(", ")}}
    calls.each do |name, call|
      delays = Array.new(5) do
        thread = Thread.new(&call)
        thread.report_on_exception = false
        sleep(0.1)
        sent = clock.()
        thread.raise("stop")
        begin
          thread.join
          abort "not interrupted: \#{name}"
        rescue RuntimeError
          clock.() - sent
        end
      end
      # The machine may be busy, so the quickest of several calls counts.
      puts [name, delays.min].join(" ")
    end
  RUBY

  class << self
    attr_accessor :delays
  end

  CALLS.each_key do |name|
    define_method(:"test_#{name}_ends_within_50_ms") do
      assert_operator delays.fetch(name), :<, 0.05
    end
  end

  private

  # Returns the seconds after which each call ended.
  def delays
    self.class.delays ||= begin
      output, = run_ruby(PROGRAM, timeout: 300)
      output.lines.to_h { |line| line.split.then { |name, delay| [name.to_sym, Float(delay)] } }
    end
  end
end
