# frozen_string_literal: true

module Offlock
  module Zlib
    # A compressor.
    class Deflate < ZStream
      def self.deflate(string, level = DEFAULT_COMPRESSION, **options, &block) = Zlib.deflate(string, level, **options, &block)

      def initialize(level = nil, wbits = nil, mem_level = nil, strategy = nil)
        super()
        start(Engine.deflate(level || DEFAULT_COMPRESSION, wbits || MAX_WBITS, mem_level || DEF_MEM_LEVEL,
                             strategy || DEFAULT_STRATEGY))
      end

      def deflate(string, flush = NO_FLUSH, &block)
        return fetch if !block && (flush.nil? || flush == NO_FLUSH) && gathered?(string)

        turn.synchronize do
          feed(string, flush || NO_FLUSH, &block)
          fetch(&block)
        end
      end

      def <<(string)
        turn.synchronize { feed(string, NO_FLUSH) } unless gathered?(string)
        self
      end

      def flush(flush = SYNC_FLUSH, &block)
        flush ||= SYNC_FLUSH
        turn.synchronize do
          run("", flush, &block) unless flush == NO_FLUSH
          fetch(&block)
        end
      end

      def params(level, strategy)
        turn.synchronize { append(engine.params(level || DEFAULT_COMPRESSION, strategy || DEFAULT_STRATEGY)) }
        nil
      end

      def set_dictionary(dictionary)
        engine.set_dictionary(dictionary)
        dictionary
      end

      private

      # Whether the engine took `string` as a small piece, which costs little; not while somebody is at the stream.
      def gathered?(string)
        made = @engine.gather(string) if @engine && !@input && !@turn&.locked?
        append(made) if made.is_a?(String)
        made
      end

      def step(piece, &block) = deflate(piece, &block)

      # Once the stream is finished, nothing can be added to it.
      def once(source, flush, limit)
        if finished?
          raise StreamError, "stream error" unless flush == FINISH
          raise BufError, "buffer error" unless source.empty?
        end
        super
      end

      def feed(string, flush, &block)
        return run("", FINISH, &block) if string.nil?

        string = text(string)
        run(string, flush, &block) unless flush == NO_FLUSH && string.empty?
      end
    end
  end
end
