# frozen_string_literal: true

require "zlib"
require "offlock/offlock"

module Offlock
  # zlib without the interpreter lock: everything that Ruby's own Zlib offers, and more.
  #
  #   Zlib = Offlock::Zlib
  #
  # The exceptions are those of the original, so that `rescue Zlib::Error` also rescues ours.
  #
  # Beyond the original: `deflate_all` and `inflate_all` work on many Strings at once on all cores. `max_output:` limits
  # the output of a decoder in bytes. `threads:` uses several cores for one gzip file. `progress:` is called about every
  # megabyte with the bytes done and the total (nil if that is unknown). `release:` (`:auto`, `:always`, `:never`)
  # controls whether the lock is released.
  module Zlib
    original = ::Zlib
    VERSION = original::VERSION
    # The interface is that of this version, regardless of the engine.
    ZLIB_VERSION = "1.3.1"

    Error = original::Error
    StreamEnd = original::StreamEnd
    NeedDict = original::NeedDict
    DataError = original::DataError
    StreamError = original::StreamError
    MemError = original::MemError
    BufError = original::BufError
    VersionError = original::VersionError
    # Older versions of Ruby's own Zlib do not define it.
    InProgressError = original.const_defined?(:InProgressError) ? original::InProgressError : Class.new(Error)
    # Raised if the output would be larger than `max_output:` allows.
    class OutputLimitError < Error; end

    BINARY = 0
    ASCII = TEXT = 1
    UNKNOWN = 2

    NO_COMPRESSION = 0
    BEST_SPEED = 1
    BEST_COMPRESSION = 9
    DEFAULT_COMPRESSION = -1

    DEFAULT_STRATEGY = 0
    FILTERED = 1
    HUFFMAN_ONLY = 2
    RLE = 3
    FIXED = 4

    DEF_MEM_LEVEL = 8
    MAX_MEM_LEVEL = 9
    MAX_WBITS = 15

    NO_FLUSH = 0
    SYNC_FLUSH = 2
    FULL_FLUSH = 3
    FINISH = 4

    original.constants.grep(/\AOS_/).each { |name| const_set(name, original.const_get(name)) }

    # The number of bytes that a block form yields at a time.
    CHUNK = 16_384
    private_constant :CHUNK

    class << self
      private :native_deflate, :native_inflate, :native_gzip, :native_gunzip, :native_gunzip_all, :native_crc32,
              :native_adler32, :native_crc32_combine, :native_adler32_combine, :native_deflate_all,
              :native_inflate_all, :native_header, :native_int, :native_uint, :native_separator, :native_mutex

      def zlib_version = ZLIB_VERSION.b

      def deflate(string, level = DEFAULT_COMPRESSION, progress: nil, release: :auto, &block)
        return native_deflate(string, level || DEFAULT_COMPRESSION, MAX_WBITS, release) unless block || progress

        Deflate.new(level).offlock_in_steps(string, progress, &block)
      end

      def inflate(string, max_output: nil, progress: nil, release: :auto, &block)
        return native_inflate(string, MAX_WBITS, max_output, release) unless block || progress

        Inflate.new(max_output: max_output).offlock_in_steps(string, progress, &block)
      end

      def gzip(string, level: nil, strategy: nil, progress: nil, release: :auto)
        return GzipWriter.pack(string, level, strategy, progress) if progress

        native_gzip(string, level || DEFAULT_COMPRESSION, strategy || DEFAULT_STRATEGY, Time.now.to_i, release)
      end

      def gunzip(string, max_output: nil, progress: nil, release: :auto)
        return GzipReader.unpack(string, max_output: max_output, progress: progress) if progress

        native_gunzip(string, max_output, release)
      end

      # Decompresses each of `strings` with one release of the lock, or one per group of strings with `progress:`.
      #
      # @param strings [Array<String>]
      # @param wbits [Integer] the window size and format, as for {Inflate}
      # @param max_output [Integer, nil] the maximum size of each result in bytes
      # @param threads [Integer] the number of threads, 0 for one per core
      # @param progress [#call, nil] called with the bytes of input done and in total
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [Array<String>] the results, in the same order
      # @raise [Error] the first error in the order of the strings; its message has the index
      # @raise [OutputLimitError] if a result would be larger than `max_output`
      def inflate_all(strings, wbits: MAX_WBITS, max_output: nil, threads: 0, progress: nil, release: :auto)
        native_inflate_all(strings, wbits, max_output, threads, progress, release)
      end

      # Compresses each of `strings` with one release of the lock, or one per group of strings with `progress:`.
      #
      # @param strings [Array<String>]
      # @param level [Integer] the compression level
      # @param wbits [Integer] the window size and format, as for {Deflate}
      # @param threads [Integer] the number of threads, 0 for one per core
      # @param progress [#call, nil] called with the bytes of input done and in total
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [Array<String>] the results, in the same order
      # @raise [Error] the first error in the order of the strings; its message has the index
      def deflate_all(strings, level = DEFAULT_COMPRESSION, wbits: MAX_WBITS, threads: 0, progress: nil, release: :auto)
        native_deflate_all(strings, level, wbits, threads, progress, release)
      end

      # Decompresses all members of a gzip file.
      #
      # @param string [String] the file
      # @param threads [Integer] the number of members to decompress at once, 0 for one per core
      # @param max_output [Integer, nil] the maximum size of the result in bytes
      # @param progress [#call, nil] called with the bytes of input done and in total
      # @param release [:auto, :always, :never] whether to release the lock
      # @return [String] the contents of all members
      # @raise [Error] if the file is not a valid gzip file
      # @raise [OutputLimitError] if the result would be larger than `max_output`
      def gunzip_all(string, threads: 0, max_output: nil, progress: nil, release: :auto)
        return GzipReader.unpack(string, threads: threads, max_output: max_output, progress: progress) if progress

        native_gunzip_all(string, threads, max_output, release)
      end

      def crc32_combine(first, second, length) = native_crc32_combine(first, second, length)
      def adler32_combine(first, second, length) = native_adler32_combine(first, second, length)

      private

      # The native crc32 and adler32 handle small Strings and forward all other calls to these.
      def crc32_of(string = nil, value = 0, release: :auto) = checksum(:native_crc32, string, value || 0, 0, release)
      def adler32_of(string = nil, value = 1, release: :auto) = checksum(:native_adler32, string, value || 1, 1, release)

      # The checksum of a String, or of the rest of an IO; without either, the initial value.
      def checksum(kind, source, value, initial, release)
        return initial if source.nil?

        return send(kind, value, source, release) unless source.respond_to?(:read) && !source.respond_to?(:to_str)

        while (piece = source.read(CHUNK * 4))
          value = send(kind, value, piece, release)
        end
        value
      end

      # The name of an object in messages of conversion errors.
      def kind_of_object(object) = [nil, true, false].include?(object) ? object.inspect : object.class
    end

    private

    # As with the original, a class that includes this module may call these as its own.
    %i[zlib_version crc_table crc32 adler32 crc32_combine adler32_combine].each do |name|
      define_method(name) { |*args, **options| Zlib.public_send(name, *args, **options) }
    end
  end
end

require_relative "zlib/stream"
require_relative "zlib/deflate"
require_relative "zlib/inflate"
require_relative "zlib/gzip_file"
require_relative "zlib/conversions"
require_relative "zlib/gzip_stream"
require_relative "zlib/line_input"
require_relative "zlib/character_input"
require_relative "zlib/plain_input"
require_relative "zlib/gzip_input"
require_relative "zlib/gzip_output"
require_relative "zlib/gzip_writer"
require_relative "zlib/line_reading"
require_relative "zlib/reading"
require_relative "zlib/gzip_reader"
