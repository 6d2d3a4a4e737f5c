# frozen_string_literal: true

module Offlock
  module Zstd
    # A compressor of a stream of any number of frames, one after the other. Several threads may use it: each call waits for
    # its turn.
    #
    # A call that is interrupted has taken its input. The next call finishes it first, and returns its output with its own;
    # `flush` and `finish` only finish an interrupted call of the same name.
    #
    # @example
    #   stream = Offlock::Zstd::StreamingCompress.new(level: 5)
    #   packed = stream.compress("off the ") << stream.compress("lock") << stream.finish
    class StreamingCompress
      # @!method compress(string)
      #   Compresses a String. Returns the output that is complete so far, which is empty for a little input.
      #   @return [String]
      # @!method write(*strings)
      #   Compresses Strings and keeps the output for the next other call.
      #   @return [Integer] their size in bytes
      # @!method flush
      #   Returns the output for all input so far.
      #   @return [String]
      # @!method finish
      #   Ends the frame, and returns its output. Another frame can follow.
      #   @return [String]
      # @!method pledged_size=(size)
      #   Declares the size of the next frame's content, which its header then has. The frame must have that size.
      #   @param size [Integer, nil]

      include Printing

      # @param level [Integer, nil] the compression level
      # @param dict [Dictionary, String, nil]
      # @param parameters [Hash{Symbol => Integer, true, false}] the library's parameters by their names
      def initialize(level: nil, dict: nil, **parameters)
        native_start(level, dict, parameters.empty? ? nil : parameters)
      end

      # Compresses a String and keeps the output.
      def <<(string)
        write(string)
        self
      end

      def print(*objects) = super(*objects.map(&:to_s))

      def printf(format, *arguments)
        write(format(format, *arguments))
        nil
      end

      def initialize_copy(_other)
        raise TypeError, "can't copy #{self.class}"
      end
    end
  end
end
