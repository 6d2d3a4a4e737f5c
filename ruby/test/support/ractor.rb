# frozen_string_literal: true

# The name of Ractor#take since Ruby 4.0.
Ractor.alias_method :value, :take unless Ractor.method_defined?(:value)
