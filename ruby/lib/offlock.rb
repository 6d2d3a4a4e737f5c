# frozen_string_literal: true

require_relative "offlock/version"
require "offlock/offlock"
require_relative "offlock/io_buffer"
require_relative "offlock/lock"
require_relative "offlock/gvl_tools"
require_relative "offlock/gvl_tracing"
require_relative "offlock/jsonl"
require_relative "offlock/message_pack"
require_relative "offlock/pipeline"
require_relative "offlock/strings"
require_relative "offlock/tiktoken"
require_relative "offlock/tokenizer"
require_relative "offlock/tokenizers"
require_relative "offlock/zlib"
require_relative "offlock/zstd"

# Traces Ruby's interpreter lock ({Lock}), and offers drop-in libraries that work without it ({Tiktoken}, {Tokenizer},
# {Zlib}, {Zstd}, {MessagePack}, {JSONL}, {Strings}, {Pipeline}).
module Offlock
  Lock.publish_if_requested
end
