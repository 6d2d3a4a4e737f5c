# frozen_string_literal: true

# Each program loads its library, then this file. If RUBYOPT replaces the originals at startup, the library is loaded after
# the replacement; otherwise this file replaces them afterwards. Then the originals are made to fail, so that a test passes
# only if offlock does the work.
require "minitest/autorun"
require "socket"
require "stringio"
require "tmpdir"
require "offlock/replace"

Warning[:deprecated] = false # the libraries' own code warns

# Finds and breaks the original modules, to which no constant refers any more.
module Originals
  def self.named(name)
    ObjectSpace.each_object(Module).find { |found| Module.instance_method(:name).bind_call(found) == name }
  end

  def self.break(original, *methods)
    return unless original

    methods.each do |method|
      original.define_singleton_method(method) { |*| raise NotImplementedError, "the original's #{method} was called" }
    end
  end

  self.break(named("Zlib"), :crc32, :adler32, :deflate, :inflate, :gzip, :gunzip)
  %w[Deflate Inflate GzipReader GzipWriter].each { |name| self.break(named("Zlib::#{name}"), :new, :allocate, :open, :wrap) }
end

# Checks that the originals have been replaced and fail.
class OriginalsTest < Minitest::Test
  def test_the_originals_are_replaced
    assert_same Offlock::Zlib, Zlib
    assert_raises(NotImplementedError) { Originals.named("Zlib").crc32("text") } if Originals.named("Zlib")
  end
end

# Helpers for several programs.
module Programs
  TEXT = ("The quick brown fox jumps over the lazy dog. " * 400).freeze

  # Runs a server that answers one request after the other with the result of +answer+ for its path. Yields the port.
  def serving(answer)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { answer_one(server.accept, answer) } }
    yield server.addr[1]
  ensure
    thread&.kill
    server&.close
  end

  private

  def answer_one(socket, answer)
    path = socket.gets.split[1]
    nil while socket.gets != "\r\n"
    encoding, body = answer.call(path)
    socket.write("HTTP/1.1 200 OK\r\nContent-Encoding: #{encoding}\r\n" \
                 "Content-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n", body)
  ensure
    socket.close
  end
end
