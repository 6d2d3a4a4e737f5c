# frozen_string_literal: true

module Offlock
  module Lock
    # Starts recorders again in forked children.
    module Forks
      # The recorders that run, also in a forked child before they start again.
      RECORDERS = [] # rubocop:disable Style/MutableConstant
      private_constant :RECORDERS

      # Starts the recorder again, by its method `start_again`, in each child that is forked from now on.
      def self.add(recorder)
        Process.singleton_class.prepend(self)
        RECORDERS << recorder
      end

      # Ends what {add} began.
      def self.remove(recorder) = RECORDERS.delete(recorder)

      # Starts the recorders of a process that has become another one.
      def self.start_again = RECORDERS.each(&:start_again)

      def _fork
        super.tap { |pid| Forks.start_again if pid.zero? }
      end
    end
    private_constant :Forks
  end
end
