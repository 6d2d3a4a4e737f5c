# frozen_string_literal: true

# Empty: "offlock/replace/msgpack" has replaced MessagePack by Offlock::MessagePack.
