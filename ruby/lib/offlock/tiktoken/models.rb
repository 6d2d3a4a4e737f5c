# frozen_string_literal: true

module Offlock
  # The table of models and their encodings.
  module Tiktoken
    # The encodings of models by full name: those of tiktoken, and those that only tiktoken_ruby has.
    MODELS = Ractor.make_shareable(
      native_models.to_h { |names| names.map(&:to_sym) }.merge("chatgpt-4o": :o200k_base)
    )

    # The encodings of families of models by prefix; the first prefix that matches counts.
    PREFIXES = Ractor.make_shareable(
      native_prefixes.to_h.transform_values(&:to_sym).merge("o4-" => :o200k_base, "codex-mini" => :o200k_base)
    )

    private_constant :MODELS, :PREFIXES
    private_class_method :native_models, :native_prefixes
  end
end
