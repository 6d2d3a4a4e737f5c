# frozen_string_literal: true

require "English"
require "minitest/autorun"
require "offlock"
require "support/ractor"

# Texts and helpers for many tests.
module Texts
  # All kinds of characters, but no special tokens.
  SENTENCE = "The quick brown fox's 1234 jumps\r\n\tnaïve café 日本語 नमस्ते 🦄👩‍👩‍👧 -> f(x) == 2;  "

  # Returns at least +bytes+ bytes of text.
  def text_of(bytes)
    SENTENCE * bytes.ceildiv(SENTENCE.bytesize)
  end

  # A text that is too long to be encoded before a test interrupts it. Its pieces are so different that caches do not help.
  def endless
    @@endless ||= Array.new(100, Random.new(1).bytes(500_000).unpack1("H*")).join.freeze # rubocop:disable Style/ClassVars
  end

  def o200k
    Offlock::Tiktoken.get_encoding(:o200k_base)
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Runs a program in another process of this Ruby; returns its output and its exit status.
  def run_ruby(program, timeout: 120, libraries: ["offlock"])
    options = $LOAD_PATH.map { |path| "-I#{path}" } + ["support/ractor", *libraries].map { |library| "-r#{library}" }
    command = [RbConfig.ruby, *options, "-e", program]
    IO.popen(command, err: %i[child out]) do |io|
      killer = Thread.new { sleep(timeout) && Process.kill("KILL", io.pid) }
      output = io.read
      killer.kill
      io.close
      [output, $CHILD_STATUS]
    end
  end
end
