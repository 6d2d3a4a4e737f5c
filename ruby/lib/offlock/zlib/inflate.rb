# frozen_string_literal: true

module Offlock
  module Zlib
    # A decompressor.
    class Inflate < ZStream
      def self.inflate(string, **options, &block) = Zlib.inflate(string, **options, &block)

      # `max_output:` is how many bytes may come out in all.
      def initialize(wbits = MAX_WBITS, max_output: nil)
        super()
        start(Engine.inflate(wbits || MAX_WBITS))
        @max_output = max_output
        @dictionaries = nil
      end

      def initialize_copy(other)
        super
        @dictionaries = @dictionaries&.dup
      end

      def inflate(string, buffer: nil, &block)
        turn.synchronize do
          buffer &&= text(buffer)
          if block && buffer
            give = block
            block = ->(chunk) { give.call(put(chunk, buffer)) }
          end
          made = finished? ? after_the_end(string, &block) : feed(string, &block)
          buffer && made ? put(made, buffer) : made
        end
      end

      def <<(string)
        turn.synchronize do
          if finished?
            append(text(string).b) unless string.nil?
          else
            work(string)
            pass_through
          end
        end
        self
      end

      # A dictionary to be used when a stream asks for it.
      def add_dictionary(dictionary)
        (@dictionaries ||= {})[Zlib.adler32(dictionary)] = dictionary
        self
      end

      def set_dictionary(dictionary)
        engine.set_dictionary(dictionary)
        dictionary
      end

      # Skips input up to a full flush point; true when there was one.
      def sync(string)
        turn.synchronize { seek(flush_next_in << text(string).b) }
      end

      def sync_point? = engine.sync_point?

      private

      # The bytes of `made`, as what the buffer's encoding makes of them.
      def put(made, buffer) = buffer.replace(made.force_encoding(buffer.encoding))

      # What follows the stream is dropped, as it is without a block.
      def step(piece, &block)
        return if finished?

        inflate(piece, &block)
        @output = nil if finished?
      end

      def feed(string, &block)
        work(string, &block)
        made = fetch(&block)
        pass_through
        made
      end

      def work(string, &block)
        return run("", FINISH, &block) if string.nil?

        string = text(string)
        run(string, SYNC_FLUSH, &block) unless string.empty? && @input.nil?
      end

      # What comes after the end of the stream is handed on as it is, with the next output.
      def after_the_end(string, &block)
        return fetch(&block) if string.nil?

        append(text(string).b)
        String.new
      end

      def pass_through
        append(flush_next_in) if finished? && @input
      end

      def once(source, flush, limit)
        return super unless @max_output

        left = @max_output - total_out
        made = super(source, flush, [limit, left + 1].compact.min)
        raise OutputLimitError, "the output would exceed max_output: #{@max_output} bytes" if made.bytesize > left

        made
      end

      def need_dictionary(flush)
        dictionary = @dictionaries&.[](adler) or return super
        set_dictionary(dictionary)
        run("", flush)
      end

      def seek(input)
        return false if input.empty?

        begin
          engine.sync(input)
        ensure
          keep(input)
        end
      end
    end
  end
end
