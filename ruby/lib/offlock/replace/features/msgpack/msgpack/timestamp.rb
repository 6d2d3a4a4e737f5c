# frozen_string_literal: true

# MessagePack is Offlock::MessagePack, and complete: "offlock/replace/msgpack" has been required.
