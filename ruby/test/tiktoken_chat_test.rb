# frozen_string_literal: true

require "json"
require_relative "test_helper"

# Tokens of chats, by OpenAI's rules, against what its API has counted.
class TiktokenChatTest < Minitest::Test
  CASES = JSON.parse(File.read(File.expand_path("../../vectors/tokens/chats.json", __dir__)))
  USER = { role: "user", content: "Hi" }.freeze

  def count(*messages, model: "gpt-4o", tools: [])
    Offlock::Tiktoken.num_tokens_from_messages(messages, model, tools:)
  end

  def test_counts_are_those_of_the_api
    CASES.each do |chat|
      chat["counts"].each do |model, counted|
        assert_equal counted, count(*chat["messages"], model:, tools: chat["tools"]), model
        symbols = JSON.parse(JSON.generate(chat), symbolize_names: true)
        assert_equal counted, count(*symbols[:messages], model: model.to_sym, tools: symbols[:tools]), model
      end
    end
  end

  def test_parts_of_messages
    assert_equal 3, count
    assert_equal 3 + 3 + 2, count(USER)
    assert_equal 3 + 3 + 2 + 1 + 1, count({ "role" => "user", "content" => "Hi", "name" => "Ann" })
    assert_equal count(USER), count({ **USER, name: nil })
    assert_equal 3 + 4 + 2 + 1 - 1, count({ **USER, name: "Ann" }, model: "gpt-3.5-turbo-0301")
    assert_equal count(USER), count({ role: :user, content: [{ type: "text", text: "Hi" }] })
    assert_equal count(USER) + 7 + 2 + 12, count(USER, tools: [{ type: "function", function: { name: "now" } }])
  end

  def test_what_has_no_rule_is_named
    image = { **USER, content: [{ type: "image_url", image_url: {} }] }
    assert_match(/a part of the type image_url/, assert_raises(ArgumentError) { count(image) }.message)
    call = { role: "assistant", content: nil, tool_calls: [{}] }
    assert_match(/tool_calls of a message/, assert_raises(ArgumentError) { count(call) }.message)
    %w[text-embedding-3-small davinci gpt-oss-120b nonesuch].each do |model|
      assert_match model, assert_raises(NotImplementedError) { count(USER, model:) }.message
    end
  end
end
