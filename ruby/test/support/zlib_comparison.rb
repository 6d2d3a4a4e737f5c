# frozen_string_literal: true

require "zlib"
require_relative "../test_helper"
require_relative "zlib_failure"

# Runs the same code with the original and with offlock; the results must be equal.
module ZlibComparison
  include ZlibFailure

  Ours = Offlock::Zlib
  Theirs = ::Zlib

  # Returns the result of `block`, with the encodings of Strings, or the class and message of the exception.
  def outcome(zlib, &block)
    described(block.call(zlib))
  rescue StandardError => e
    failure(e)
  end

  def described(value)
    case value
    when String then [value, value.encoding]
    when Array then value.map { |element| described(element) }
    else value
    end
  end

  def assert_same(message = nil, &block)
    expected, found = [Theirs, Ours].map { |zlib| outcome(zlib, &block) }
    expected.nil? ? assert_nil(found, message) : assert_equal(expected, found, message)
  end
end
