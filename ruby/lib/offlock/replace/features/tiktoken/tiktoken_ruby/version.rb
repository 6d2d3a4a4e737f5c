# frozen_string_literal: true

# Empty: "offlock/replace/tiktoken" has replaced Tiktoken by Offlock::Tiktoken.
