# frozen_string_literal: true

module Offlock
  module Lock
    # Reports the names of Ractors that are made while a trace is running.
    module RactorNames
      # Makes a Ractor as usual, and reports its name.
      def new(...) = super.tap { |ractor| Instrumentation.name_ractor(ractor) }

      def self.install
        Ractor.singleton_class.prepend(self) unless Ractor.singleton_class.include?(self)
      end
    end
    private_constant :RactorNames
  end
end
