# frozen_string_literal: true

require_relative "stand_in"

# Replaces Tiktoken by Offlock::Tiktoken.
module Offlock
  StandIn.put(:Tiktoken, Tiktoken)
  StandIn.provide("tiktoken")
end
