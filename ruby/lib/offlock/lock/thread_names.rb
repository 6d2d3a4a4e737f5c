# frozen_string_literal: true

module Offlock
  module Lock
    # Reports names that threads get after they have started, such as those of a server's pool.
    module ThreadNames
      # Names the thread as usual, and reports the name.
      def name=(name)
        super.tap { Native.name_thread(self, name) if name && alive? }
      end

      def self.install
        Thread.prepend(self) unless Thread.include?(self)
      end
    end
    private_constant :ThreadNames
  end
end
