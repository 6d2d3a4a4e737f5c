# frozen_string_literal: true

# Each program here loads its library, then this file: where RUBYOPT has replaced the originals at the start, the library was
# loaded afterwards; where it has not, before. Then the originals are made to fail, so that it cannot be they who do the work.
require "minitest/autorun"
require "socket"
require "stringio"
require "tmpdir"
require "offlock/replace"

Warning[:deprecated] = false # of the libraries' own code

# Ruby's own Zlib, which no constant leads to any more.
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

# Checks that no program can do without.
class OriginalsTest < Minitest::Test
  def test_the_originals_are_out_of_the_way
    assert_same Offlock::Zlib, Zlib
    assert_raises(NotImplementedError) { Originals.named("Zlib").crc32("text") } if Originals.named("Zlib")
  end
end

# What several programs need.
module Programs
  TEXT = ("The quick brown fox jumps over the lazy dog. " * 400).freeze

  # Answers one request after the other with what the block makes of its path and headers; yields the port.
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
