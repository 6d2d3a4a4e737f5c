# frozen_string_literal: true

module Offlock
  # Tells native code while there is an IO::Buffer through which the bytes of a String, and of Strings that share them,
  # can be changed.
  module Buffers
    # Stands before IO::Buffer's own methods.
    module Watch
      # As ever.
      def for(string, &block)
        return super unless block

        Buffers.enter
        begin
          super
        ensure
          Buffers.leave
        end
      end

      # As ever.
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
