# frozen_string_literal: true

module Offlock
  module Zlib
    # A compressor.
    class Deflate < ZStream
      def self.deflate(string, level = DEFAULT_COMPRESSION, **options, &block) = Zlib.deflate(string, level, **options, &block)

      def initialize(level = nil, wbits = nil, mem_level = nil, strategy = nil)
        super()
        offlock_start(Engine.deflate(level || DEFAULT_COMPRESSION, wbits || MAX_WBITS, mem_level || DEF_MEM_LEVEL,
                                     strategy || DEFAULT_STRATEGY))
      end

      def deflate(string, flush = NO_FLUSH, &block)
        return offlock_fetch if !block && (flush.nil? || flush == NO_FLUSH) && offlock_gathered?(string)

        offlock_mutex.synchronize do
          offlock_feed(string, flush || NO_FLUSH, &block)
          offlock_fetch(&block)
        end
      end

      def <<(string)
        offlock_mutex.synchronize { offlock_feed(string, NO_FLUSH) } unless offlock_gathered?(string)
        self
      end

      def flush(flush = SYNC_FLUSH, &block)
        flush ||= SYNC_FLUSH
        offlock_mutex.synchronize do
          offlock_run("", flush, &block) unless flush == NO_FLUSH
          offlock_fetch(&block)
        end
      end

      def params(level, strategy)
        offlock_mutex.synchronize do
          offlock_append(offlock_engine.params(level || DEFAULT_COMPRESSION, strategy || DEFAULT_STRATEGY))
        end
        nil
      end

      def set_dictionary(dictionary)
        offlock_engine.set_dictionary(dictionary)
        dictionary
      end

      private

      # Returns a true value if the engine took `string` as a small piece, which is cheap; nil while the stream is in
      # use.
      def offlock_gathered?(string)
        made = @offlock_engine.gather(string) if @offlock_engine && !@offlock_input && !@offlock_mutex&.locked?
        offlock_append(made) if made.is_a?(String)
        made
      end

      def offlock_step(piece, &block) = deflate(piece, &block)

      # A finished stream accepts no more input.
      def offlock_once(source, flush, limit)
        if finished?
          raise StreamError, "stream error" unless flush == FINISH
          raise BufError, "buffer error" unless source.empty?
        end
        super
      end

      def offlock_feed(string, flush, &block)
        return offlock_run("", FINISH, &block) if string.nil?

        string = offlock_text(string)
        offlock_run(string, flush, &block) unless flush == NO_FLUSH && string.empty?
      end
    end
  end
end
