# frozen_string_literal: true

require "fiddle"

# The library itself, by its functions for whole buffers.
module ZstdOriginal
  module_function

  def library = @library ||= Fiddle.dlopen("libzstd.so.1")

  def available?
    library
    true
  rescue Fiddle::DLError
    false
  end

  SIZE = Fiddle::TYPE_SIZE_T
  POINTER = Fiddle::TYPE_VOIDP
  INT = Fiddle::TYPE_INT

  def compress(string, level: 3, dict: "")
    room = ("\0" * call("ZSTD_compressBound", [SIZE], SIZE, string.bytesize)).b
    context = call("ZSTD_createCCtx", [], POINTER)
    types = [POINTER, POINTER, SIZE, POINTER, SIZE, POINTER, SIZE, INT]
    size = call("ZSTD_compress_usingDict", types, SIZE, context, room, room.bytesize, string, string.bytesize, dict, dict.bytesize,
                level)
    call("ZSTD_freeCCtx", [POINTER], SIZE, context)
    checked(room, size)
  end

  # Decompresses all frames; the result must not be longer than `most` bytes.
  def decompress(string, most: 1 << 20, dict: "")
    room = ("\0" * most).b
    context = call("ZSTD_createDCtx", [], POINTER)
    types = [POINTER, POINTER, SIZE, POINTER, SIZE, POINTER, SIZE]
    size = call("ZSTD_decompress_usingDict", types, SIZE, context, room, room.bytesize, string, string.bytesize, dict, dict.bytesize)
    call("ZSTD_freeDCtx", [POINTER], SIZE, context)
    checked(room, size)
  end

  def train(samples, size)
    room = ("\0" * size).b
    lengths = samples.map(&:bytesize).pack("J*")
    types = [POINTER, SIZE, POINTER, POINTER, Fiddle::TYPE_INT]
    checked(room, call("ZDICT_trainFromBuffer", types, SIZE, room, size, samples.join, lengths, samples.size))
  end

  def frame_size(string) = call("ZSTD_findFrameCompressedSize", [POINTER, SIZE], SIZE, string, string.bytesize)

  def dict_id(dict) = call("ZSTD_getDictID_fromDict", [POINTER, SIZE], Fiddle::TYPE_INT, dict, dict.bytesize) & 0xffffffff

  def checked(room, size)
    raise "the library refuses" unless call("ZSTD_isError", [SIZE], INT, size).zero?

    room.byteslice(0, size)
  end

  def call(name, types, result, *arguments)
    (@functions ||= {})[name] ||= Fiddle::Function.new(library[name], types, result)
    @functions[name].call(*arguments)
  end
end
