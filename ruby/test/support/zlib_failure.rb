# frozen_string_literal: true

# What is compared of a failure: its class, and its message without the mention of our module and the place that ours adds to some.
module ZlibFailure
  def failure(error)
    [error.class, error.message.delete_prefix("Offlock::").sub(/ \(at byte \d+ of the input\)/, "")]
  end
end
