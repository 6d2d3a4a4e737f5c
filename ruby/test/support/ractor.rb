# frozen_string_literal: true

# Its name since Ruby 4.0.
Ractor.alias_method :value, :take unless Ractor.method_defined?(:value)
