# frozen_string_literal: true

module Offlock
  module Lock
    # Tells the recorder the names of Ractors that are made while a trace runs.
    module RactorNames
      # Makes a Ractor as ever.
      def new(...) = super.tap { |ractor| Instrumentation.name_ractor(ractor) }

      def self.install
        Ractor.singleton_class.prepend(self) unless Ractor.singleton_class.include?(self)
      end
    end
    private_constant :RactorNames
  end
end
