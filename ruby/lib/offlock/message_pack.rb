# frozen_string_literal: true

require "offlock/offlock"
require_relative "message_pack/buffer"
require_relative "message_pack/packer"
require_relative "message_pack/unpacker"
require_relative "message_pack/factory"
require_relative "message_pack/timestamp"
require_relative "message_pack/time"
require_relative "message_pack/view"

module Offlock
  # MessagePack off the lock, with the interface of the gem msgpack: `MessagePack = Offlock::MessagePack` keeps a
  # program working. Every Ractor can use it. "offlock/message_pack/core_ext" adds +to_msgpack+ to the core classes.
  module MessagePack
    # The version of msgpack whose interface this is.
    VERSION = "1.8.3"

    # An extension whose type is not registered: see the option +allow_unknown_ext+.
    ExtensionValue = Struct.new(:type, :payload)
  end
end
