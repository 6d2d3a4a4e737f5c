# frozen_string_literal: true

module Offlock
  module Zstd
    # A decompressor of a stream of any number of frames, one after the other. Several threads may use it: each call waits for
    # its turn.
    #
    # A call that is interrupted has taken its input. The next call continues it: pass `""` only to do that.
    #
    # @example
    #   stream = Offlock::Zstd::StreamingDecompress.new
    #   plain = stream.decompress(packed[0, 10]) << stream.decompress(packed[10..])
    #   stream.finished?
    class StreamingDecompress
      # @!method decompress_with_pos(string)
      #   Decompresses a String to the end of the frame at most.
      #   @return [Array(String, Integer)] the output, and how many bytes of the String were read
      # @!method finished?
      #   @return [Boolean] whether all input was read and ended with a frame
      # @!method needs_input?
      #   @return [Boolean] whether there is no more output without more input; false after a call that returned
      #     `max_length` bytes

      # @param dict [Dictionary, String, nil]
      # @param max_output [Integer, nil] the most bytes that all calls together may return
      # @param window_log_max [Integer, nil] the largest window to accept, as a power of two
      def initialize(dict: nil, max_output: nil, window_log_max: nil)
        native_start(dict, window_log_max, max_output)
      end

      # Decompresses a String, after what earlier calls have left.
      #
      # @param string [String]
      # @param max_length [Integer, nil] the most bytes to return; the rest comes with the next calls
      # @return [String]
      # @raise [Error] if the data is damaged; another frame begins with the next call
      # @raise [OutputLimitError] if there is more output than `max_output` allows
      def decompress(string, max_length: nil) = native_decompress(string, max_length)

      def initialize_copy(_other)
        raise TypeError, "can't copy #{self.class}"
      end
    end
  end
end
