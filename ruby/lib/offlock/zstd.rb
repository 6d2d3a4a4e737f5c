# frozen_string_literal: true

require "offlock/offlock"
require_relative "zlib"

module Offlock
  # Zstandard without the interpreter lock: other threads run while it compresses and decompresses.
  #
  # The names are those of the gem zstd-ruby, as far as it has them. The exceptions are {Error}, a RuntimeError, which is
  # what the gem raises.
  #
  # Everything that compresses takes the keywords `level:` (from -131072 to 22; 3), `dict:` (a {Dictionary}, or a String with
  # the content of one), and the library's parameters by their names: `checksum_flag: true`, `window_log: 20`,
  # `nb_workers: 2`, `enable_long_distance_matching: true`, ... Everything that decompresses takes `dict:`, `max_output:`,
  # which limits the output in bytes, and `window_log_max:`, which limits the memory for a frame's window as a power of two.
  #
  # @example
  #   packed = Offlock::Zstd.compress("off the lock " * 1000, level: 5)
  #   Offlock::Zstd.decompress(packed, max_output: 20_000)
  module Zstd
    # What is known of a frame without decompressing it.
    FrameInfo = Data.define(:decompressed_size, :dictionary_id)

    # What the files of {Zlib} have for any format.
    Reading = Zlib.const_get(:Reading)
    private_constant :Printing, :LineReading, :Reading, :ReadBuffer

    class << self
      private :native_compress, :native_decompress, :native_train, :native_finalize, :native_frame_size,
              :native_frame_info, :native_write_skippable, :native_read_skippable

      # Compresses a String to one frame.
      #
      # @param string [String]
      # @param level [Integer, nil] the compression level
      # @param dict [Dictionary, String, nil] what compressor and decompressor both know beforehand
      # @param release [:auto, :always, :never] whether to release the lock
      # @param parameters [Hash{Symbol => Integer, true, false}] the library's parameters by their names
      # @return [String]
      # @raise [Error] if the library refuses
      # @raise [ArgumentError] for an unknown parameter, or a value that it cannot have
      def compress(string, level: nil, dict: nil, release: :auto, **parameters)
        native_compress(string, level, dict, parameters.empty? ? nil : parameters, release)
      end

      # Decompresses all frames of a String.
      #
      # @param string [String]
      # @param dict [Dictionary, String, nil] the dictionary that it was compressed with
      # @param max_output [Integer, nil] the most bytes to return
      # @param window_log_max [Integer, nil] the largest window to accept, as a power of two; 27 if it is nil
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [String]
      # @raise [Error] if the data is damaged, incomplete, or needs another dictionary
      # @raise [OutputLimitError] if the result would be larger than `max_output`
      def decompress(string, dict: nil, max_output: nil, window_log_max: nil, release: :auto)
        native_decompress(string, dict, window_log_max, max_output, release)
      end

      # Makes a dictionary for content like `samples`, of which there should be some hundreds.
      #
      # @param samples [Array<String>]
      # @param size [Integer] the most bytes of the dictionary
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [Dictionary]
      # @raise [Error] if there are too few samples
      def train_dict(samples, size = 112_640, release: :auto) = Dictionary.new(native_train(samples, size, release))

      # Makes a dictionary that ends with the content of another one, for content like `samples`.
      #
      # @param dict [Dictionary] often one of raw content
      # @param samples [Array<String>]
      # @param size [Integer] the most bytes of the new dictionary
      # @param level [Integer] the level that it will be used with
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [Dictionary]
      # @raise [Error] if that does not fit
      def finalize_dict(dict, samples, size = 112_640, level: DEFAULT_LEVEL, release: :auto)
        Dictionary.new(native_finalize(dict, samples, size, level, release))
      end

      # Returns what the header of the first frame says.
      #
      # @param string [String] begins with a frame, of which 18 bytes are enough
      # @return [FrameInfo] the size of the content (nil if the header does not have it), and the number of the dictionary
      #   (0 for none)
      # @raise [Error] if there is no header
      def frame_info(string)
        size, id = native_frame_info(string)
        FrameInfo.new(decompressed_size: size, dictionary_id: id)
      end

      # Returns the length of the first frame in bytes.
      #
      # @param string [String] begins with a whole frame
      # @return [Integer]
      # @raise [Error] if there is none
      def frame_size(string) = native_frame_size(string)

      # Puts a frame before a String that decompressors skip, with data of a program's own.
      #
      # @param string [String] frames
      # @param data [String] the data
      # @param magic_variant [Integer] a number from 0 to 15
      # @return [String] the frame with the data, then `string`
      def write_skippable_frame(string, data, magic_variant: 0) = native_write_skippable(string, data, magic_variant)

      # Returns the data of the skippable frame that a String begins with; nil if it begins with another one.
      #
      # @param string [String]
      # @return [String, nil]
      # @raise [Error] if the frame is not complete
      def read_skippable_frame(string) = native_read_skippable(string)
    end
  end
end

require_relative "zstd/dictionary"
require_relative "zstd/streaming_compress"
require_relative "zstd/streaming_decompress"
require_relative "zstd/read_input"
require_relative "zstd/stream_reader"
require_relative "zstd/stream_writer"
