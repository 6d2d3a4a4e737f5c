# frozen_string_literal: true

# Makes the whole program use Offlock::Zlib, Offlock::MessagePack and Offlock::Tiktoken by the originals' names: with
# `require "offlock/replace"`, or from outside with RUBYOPT=-rofflock/replace. "offlock/replace/zlib" and its
# neighbours replace one of them each.
require_relative "replace/msgpack"
require_relative "replace/tiktoken"
require_relative "replace/zlib"
