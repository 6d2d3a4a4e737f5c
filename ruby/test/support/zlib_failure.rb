# frozen_string_literal: true

# The comparable part of an exception: its class, and its message without the name Offlock and the position that offlock adds.
module ZlibFailure
  def failure(error)
    [error.class, error.message.delete_prefix("Offlock::").sub(/ \(at byte \d+ of the input\)/, "")]
  end
end
