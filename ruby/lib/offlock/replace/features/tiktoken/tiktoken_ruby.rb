# frozen_string_literal: true

# Tiktoken is Offlock::Tiktoken, and complete: "offlock/replace/tiktoken" has been required.
