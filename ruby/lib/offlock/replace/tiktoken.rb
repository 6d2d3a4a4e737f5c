# frozen_string_literal: true

require_relative "stand_in"

# Makes Tiktoken mean Offlock::Tiktoken.
module Offlock
  StandIn.put(:Tiktoken, Tiktoken)
  StandIn.provide("tiktoken")
end
