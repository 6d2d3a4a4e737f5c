# frozen_string_literal: true

module Offlock
  module Zstd
    # Data that compressor and decompressor both know beforehand. It is prepared once for each level, so it is quicker than a
    # String with its content. Frozen; Ractors can share it.
    class Dictionary
      # @!method dict_id
      #   @return [Integer] the number that frames name it by; 0 if the content is not in the format of a dictionary
      # @!method dict_content
      #   @return [String] a copy of the content
      # @!method bytesize
      #   @return [Integer] the size of the content

      # @param content [String] what {Zstd.train_dict} or `zstd --train` has made, or any data like that to be compressed
      def initialize(content)
        native_start(content, nil)
        freeze
      end

      def dup = self
      def clone(freeze: nil) = self # rubocop:disable Lint/UnusedMethodArgument

      def inspect = "#<#{self.class} dict_id=#{dict_id} bytesize=#{bytesize}>"

      private :native_start
    end

    # A dictionary that is prepared for one level, which is then the level of those that compress with it.
    class CDict < Dictionary
      # @param content [String]
      # @param level [Integer, nil] the compression level; 3 if it is nil
      # @raise [Error] if the content is a damaged dictionary
      def initialize(content, level = nil) # rubocop:disable Lint/MissingSuper
        native_start(content, level || DEFAULT_LEVEL)
        freeze
      end
    end

    # A dictionary for decompression, by the name that the gem zstd-ruby has for it.
    class DDict < Dictionary
    end
  end
end
