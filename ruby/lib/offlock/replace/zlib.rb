# frozen_string_literal: true

require_relative "stand_in"

# Makes Zlib mean Offlock::Zlib.
module Offlock
  # Ruby's own is loaded, for its exceptions: another `require "zlib"` does nothing.
  StandIn.put(:Zlib, Zlib)
end
