# frozen_string_literal: true

module Offlock
  # Lets native code know whether an IO::Buffer exists through which a program can change the bytes of a String, and of
  # Strings that share them.
  module Buffers
    # Prepended to IO::Buffer's singleton class.
    module Watch
      # Like IO::Buffer.for, and counted by Buffers while the block runs.
      def for(string, &block)
        return super unless block

        Buffers.enter
        begin
          super
        ensure
          Buffers.leave
        end
      end

      # Like IO::Buffer.string, and counted by Buffers while the block runs.
      def string(length, &)
        Buffers.enter
        super
      ensure
        Buffers.leave
      end
    end

    IO::Buffer.singleton_class.prepend(Watch) if defined?(IO::Buffer)
  end
  private_constant :Buffers
end
