# frozen_string_literal: true

module Offlock
  module Lock
    # Distinguishes `sleep` from other waits. After the first trace, each call of `sleep` costs about 100 ns more.
    module Sleep
      # The file's name makes Ruby and the stacks of traces show the caller's line, as for functions in C.
      module_eval <<~RUBY, "<internal:offlock>", __LINE__ + 1 # rubocop:disable Style/EvalWithLocation
        # Sleeps as usual, and reports the beginning and the end.
        def sleep(...)
          Native.sleeps = true
          super
        ensure
          Native.sleeps = false
        end
        private :sleep
      RUBY

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
