# frozen_string_literal: true

# A program that gives its work to other processes. Load: processes.
require_relative "work"

Integer(ARGV[0]).times { fork { compute(0.02) while goes_on? } }
Process.waitall
