# frozen_string_literal: true

module Offlock
  module Lock
    # Tells `sleep` apart from other idling. Once a trace has run, each `sleep` costs some 100 ns more.
    module Sleep
      # Sleeps as ever.
      def sleep(...)
        Native.sleeps = true
        super
      ensure
        Native.sleeps = false
      end
      private :sleep

      def self.install
        return if @installed

        @installed = true
        Kernel.prepend(self)
        Kernel.singleton_class.prepend(dup.module_eval { public(:sleep) && self })
      end
    end
    private_constant :Sleep
  end
end
