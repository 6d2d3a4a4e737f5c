# frozen_string_literal: true

# Makes the whole program use Offlock::Zlib, Offlock::MessagePack and Offlock::Tiktoken under the originals' names. Use
# `require "offlock/replace"`, or RUBYOPT=-rofflock/replace without changing the program. "offlock/replace/zlib",
# "offlock/replace/msgpack" and "offlock/replace/tiktoken" replace one of them each.
require_relative "replace/msgpack"
require_relative "replace/tiktoken"
require_relative "replace/zlib"
