# frozen_string_literal: true

module Offlock
  module Tiktoken
    # Counts the tokens of a prompt, by the rules that OpenAI has published for its models.
    class Chat
      # The beginnings of the names of models that answer chats. They are given messages in one format.
      MODELS = %w[gpt-3.5 gpt-35 gpt-4 gpt-5 chatgpt- o1 o3 o4 ft:gpt-3.5 ft:gpt-4].freeze
      # Tokens around each message, and around a name.
      RULES = [3, 1].freeze
      # The same of the first version, in which a name took the place of the role.
      FIRST_RULES = { "gpt-3.5-turbo-0301" => [4, -1].freeze }.freeze
      # Tokens with which the reply begins.
      REPLY = 3
      # Tokens around the parts of the functions that a model may call.
      PER_FUNCTION = { cl100k_base: 10, o200k_base: 7 }.freeze
      PER_PROPERTIES = 3
      PER_PROPERTY = 3
      PER_ENUM = -3
      PER_ITEM = 3
      AFTER_FUNCTIONS = 12
      private_constant(*constants)

      # @param model [String]
      # @raise [NotImplementedError] if the model answers no chats
      def initialize(model)
        @encoding = Tiktoken.encoding_for_model(model) if model.start_with?(*MODELS)
        raise NotImplementedError, "there are no rules for the messages of #{model}" unless @encoding

        @per_message, @per_name = FIRST_RULES.fetch(model, RULES)
        @count = REPLY
        @texts = []
      end

      # Adds a message.
      # @param message [Hash]
      def add(message)
        message = message.transform_keys(&:to_s)
        @count += @per_message
        @count += @per_name if message["name"]
        message.each { |key, value| add_entry(key, value) }
      end

      # Adds the functions that the model may call.
      # @param tools [Array<Hash>]
      def add_tools(tools)
        tools.each { |tool| add_function(tool.transform_keys(&:to_s).fetch("function").transform_keys(&:to_s)) }
        @count += AFTER_FUNCTIONS unless tools.empty?
      end

      # @return [Integer] the number of tokens
      def total
        @count + @encoding.count_batch(@texts).sum
      end

      private

      def add_entry(key, value)
        case value
        when String, Symbol then @texts << value.to_s
        when nil then nil
        when Array
          raise no_rule("#{key} of a message") unless key == "content"

          value.each { |part| add_part(part.transform_keys(&:to_s)) }
        else raise no_rule("#{key} of a message")
        end
      end

      def add_part(part)
        raise no_rule("a part of the type #{part["type"]}") unless part["type"].to_s == "text"

        @texts << part.fetch("text")
      end

      def add_function(function)
        @count += PER_FUNCTION.fetch(@encoding.name)
        @texts << "#{function.fetch("name")}:#{sentence(function)}"
        properties = function.fetch("parameters", {}).transform_keys(&:to_s).fetch("properties", {})
        @count += PER_PROPERTIES unless properties.empty?
        properties.each { |name, schema| add_property(name, schema.transform_keys(&:to_s)) }
      end

      def add_property(name, schema)
        @count += PER_PROPERTY
        if (items = schema["enum"])
          @count += PER_ENUM + (PER_ITEM * items.size)
          @texts.concat(items.map(&:to_s))
        end
        @texts << "#{name}:#{schema.fetch("type")}:#{sentence(schema)}"
      end

      def sentence(schema) = schema.fetch("description", "").to_s.delete_suffix(".")

      def no_rule(subject) = ArgumentError.new("there is no rule for #{subject}")
    end
    private_constant :Chat
  end
end
