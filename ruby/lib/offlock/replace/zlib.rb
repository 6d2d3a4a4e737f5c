# frozen_string_literal: true

require_relative "stand_in"

# Replaces Zlib by Offlock::Zlib.
module Offlock
  # Offlock::Zlib has loaded Ruby's own Zlib for its exceptions, so another `require "zlib"` does nothing.
  StandIn.put(:Zlib, Zlib)
end
