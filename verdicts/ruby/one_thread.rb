# frozen_string_literal: true

# A program with one thread, which computes. Load: the length of its loop's steps in ms.
require_relative "work"

compute(Integer(ARGV[0]) / 1000.0) while goes_on?
