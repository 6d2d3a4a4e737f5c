# frozen_string_literal: true

module Offlock
  module Zlib
    # A decompressor.
    class Inflate < ZStream
      def self.inflate(string, **options, &block) = Zlib.inflate(string, **options, &block)

      # `max_output:` is the maximum size of the output in bytes; {OutputLimitError} is raised beyond it.
      def initialize(wbits = MAX_WBITS, max_output: nil)
        super()
        offlock_start(Engine.inflate(wbits || MAX_WBITS))
        @offlock_max_output = max_output
        @offlock_dictionaries = nil
      end

      def initialize_copy(other)
        super
        @offlock_dictionaries = @offlock_dictionaries&.dup
      end

      def inflate(string, buffer: nil, &block)
        offlock_mutex.synchronize do
          buffer &&= offlock_text(buffer)
          if block && buffer
            give = block
            block = ->(chunk) { give.call(offlock_put(chunk, buffer)) }
          end
          made = finished? ? offlock_after_the_end(string, &block) : offlock_feed(string, &block)
          buffer && made ? offlock_put(made, buffer) : made
        end
      end

      def <<(string)
        offlock_mutex.synchronize do
          if finished?
            offlock_append(offlock_text(string).b) unless string.nil?
          else
            offlock_work(string)
            offlock_pass_through
          end
        end
        self
      end

      # Adds a dictionary, to be used when a stream needs it.
      def add_dictionary(dictionary)
        (@offlock_dictionaries ||= {})[Zlib.adler32(dictionary)] = dictionary
        self
      end

      def set_dictionary(dictionary)
        offlock_engine.set_dictionary(dictionary)
        dictionary
      end

      # Skips input up to a full flush point.
      #
      # @return [Boolean] whether there was one
      def sync(string)
        offlock_mutex.synchronize { offlock_seek(flush_next_in << offlock_text(string).b) }
      end

      def sync_point? = offlock_engine.sync_point?

      private

      # Stores `made` in the buffer, in the buffer's encoding.
      def offlock_put(made, buffer) = buffer.replace(made.force_encoding(buffer.encoding))

      # Ignores input after the end of the stream, as without a block.
      def offlock_step(piece, &block)
        return if finished?

        inflate(piece, &block)
        @offlock_output = nil if finished?
      end

      def offlock_feed(string, &block)
        offlock_work(string, &block)
        made = offlock_fetch(&block)
        offlock_pass_through
        made
      end

      def offlock_work(string, &block)
        return offlock_run("", FINISH, &block) if string.nil?

        string = offlock_text(string)
        offlock_run(string, SYNC_FLUSH, &block) unless string.empty? && @offlock_input.nil?
      end

      # Input after the end of the stream is returned unchanged, with the next output.
      def offlock_after_the_end(string, &block)
        return offlock_fetch(&block) if string.nil?

        offlock_append(offlock_text(string).b)
        String.new
      end

      def offlock_pass_through
        offlock_append(flush_next_in) if finished? && @offlock_input
      end

      def offlock_once(source, flush, limit)
        return super unless @offlock_max_output

        left = @offlock_max_output - total_out
        made = super(source, flush, [limit, left + 1].compact.min)
        raise OutputLimitError, "the output would exceed max_output: #{@offlock_max_output} bytes" if made.bytesize > left

        made
      end

      def offlock_need_dictionary(flush)
        dictionary = @offlock_dictionaries&.[](adler) or return super
        set_dictionary(dictionary)
        offlock_run("", flush)
      end

      def offlock_seek(input)
        return false if input.empty?

        begin
          offlock_engine.sync(input)
        ensure
          offlock_keep(input)
        end
      end
    end
  end
end
