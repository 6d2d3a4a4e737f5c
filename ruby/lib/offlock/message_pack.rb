# frozen_string_literal: true

require_relative "message_pack/buffer"
require_relative "message_pack/packer"
require_relative "message_pack/unpacker"
require_relative "message_pack/factory"
require_relative "message_pack/timestamp"
require_relative "message_pack/time"
require_relative "message_pack/view"

module Offlock
  # MessagePack off the lock, with the interface of the gem msgpack: `MessagePack = Offlock::MessagePack` keeps a
  # program working. Usable from every Ractor. The methods +to_msgpack+ of core classes are in
  # "offlock/message_pack/core_ext".
  module MessagePack
    # The version of msgpack whose interface this is.
    VERSION = "1.8.3"

    # An extension of a type that nobody registered: see the option +allow_unknown_ext+.
    ExtensionValue = Struct.new(:type, :payload)
  end
end
