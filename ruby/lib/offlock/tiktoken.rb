# frozen_string_literal: true

require "offlock/offlock"
require_relative "tiktoken/chat"
require_relative "tiktoken/chunk"
require_relative "tiktoken/encoding"
require_relative "tiktoken/models"
require_relative "tiktoken/stream"

module Offlock
  # Converts text to the tokens of OpenAI's models and back, without the interpreter lock.
  #
  # It has the interface of the gem tiktoken_ruby, so that
  #
  #   Tiktoken = Offlock::Tiktoken
  #
  # keeps a program working. Encodings are frozen and may be used by many threads and Ractors at once.
  #
  # @example
  #   encoding = Offlock::Tiktoken.encoding_for_model("gpt-4o")
  #   encoding.encode("hello world")      #=> [24912, 2375]
  #   encoding.count("hello world")       #=> 2
  #   encoding.decode([24912, 2375])      #=> "hello world"
  module Tiktoken
    # The version of tiktoken_ruby whose interface this is.
    VERSION = "0.0.17"

    class << self
      # @param name [Symbol, String] one of {list_encoding_names}
      # @return [Encoding, nil] the encoding, or nil if there is none of that name
      def get_encoding(name)
        Encoding::ALL[name.to_sym]
      end

      # @param model_name [Symbol, String] a model's name, like "gpt-4o" or "gpt-4o-2024-08-06"
      # @return [Encoding, nil] the encoding that the model uses, or nil if the model is not known
      def encoding_for_model(model_name)
        name = MODELS.fetch(model_name.to_sym) do
          PREFIXES.each { |prefix, encoding| break encoding if model_name.start_with?(prefix) }
        end
        get_encoding(name) if name.is_a?(Symbol)
      end

      # @return [Array<Symbol>] the names that {get_encoding} accepts
      def list_encoding_names
        Encoding::ALL.keys
      end

      # @return [Array<Symbol>] the full names of models that {encoding_for_model} knows, without the families of models
      #   that it knows by prefix
      def list_model_names
        MODELS.keys
      end

      # Counts the tokens of a prompt: the messages of a chat, and the functions that the model may call.
      #
      # The rules are those of OpenAI's cookbook (+num_tokens_from_messages+ and +num_tokens_for_tools+): exact for the models
      # named there, up to GPT-4o. OpenAI has published none for newer models, which are counted by the same rules.
      #
      # @param messages [Array<Hash>] as OpenAI's API takes them; the content may be an Array of parts of text
      # @param model [String, Symbol] the model
      # @param tools [Array<Hash>] the functions that the model may call, as OpenAI's API takes them
      # @return [Integer]
      # @raise [NotImplementedError] for a model that answers no chats
      # @raise [ArgumentError] for what has no published rule, such as images and calls of functions
      def num_tokens_from_messages(messages, model, tools: [])
        chat = Chat.new(model.to_s)
        messages.each { |message| chat.add(message) }
        chat.add_tools(tools)
        chat.total
      end
    end
  end
end
