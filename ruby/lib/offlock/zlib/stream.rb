# frozen_string_literal: true

module Offlock
  module Zlib
    # Lets one thread into a stream at a time. A block that calls the stream which calls it gets what the original raises
    # there: ThreadError from Ruby 3.4 on, InProgressError before.
    class Turn < Thread::Mutex
      if RUBY_VERSION < "3.4"
        def synchronize
          raise InProgressError, "zstream is in progress" if owned?

          super
        end
      end
    end
    private_constant :Turn

    # What Deflate and Inflate have in common: an engine, input that it did not read yet, output that nobody fetched yet.
    class ZStream
      def initialize_copy(other)
        super
        @engine = other.engine.copy
        @input = other.input&.dup
        @output = other.output&.dup
        @turn = nil
      end

      def avail_in = @input ? @input.bytesize : 0
      def avail_out = @avail_out || 0

      # Of no consequence: output grows as it must.
      def avail_out=(size)
        @avail_out = Zlib.send(:native_int, size) & 0xffffffff
      end

      def total_in = engine.total_in
      def total_out = engine.total_out
      def adler = engine.adler
      def data_type = engine.data_type
      def finished? = engine.ended?
      def closed? = @engine.nil?
      alias stream_end? finished?
      alias inspect to_s
      alias ended? closed?

      # Ends the stream and returns what is left of its output, or yields it.
      def finish(&block)
        turn.synchronize do
          run("", FINISH, &block)
          fetch(&block)
        end
      end

      def flush_next_in
        rest, @input = @input, nil
        rest || String.new
      end

      def flush_next_out(&block)
        turn.synchronize { fetch(&block) }
      end

      def reset
        engine.reset
        @input = @output = nil
      end

      def close
        engine.close
        @engine = @input = nil
      end
      alias end close

      # Works through `string` and ends the stream, telling `progress` after each megabyte how far it is.
      def in_steps(string, progress, &block)
        string = text(string)
        made = block ? nil : String.new
        take = block || ->(chunk) { made << chunk }
        done = 0
        while done < string.bytesize
          piece = string.byteslice(done, STEP)
          done += piece.bytesize
          step(piece, &take)
          progress&.call(done, string.bytesize)
        end
        finish(&take)
        made
      end

      protected

      attr_reader :input, :output

      def engine
        @engine or raise Error, "stream is not ready"
      end

      def turn
        @turn || (engine && Zlib.send(:native_turn, self, Turn))
      end

      private

      # Input between two calls of a `progress:` callback.
      STEP = 1 << 20
      private_constant :STEP

      def start(engine)
        @engine = engine
        @input = @output = @turn = nil
      end

      def text(object)
        String.try_convert(object) or
          raise TypeError, "no implicit conversion of #{Zlib.send(:kind_of_object, object)} into String"
      end

      # Works through what is left of the input and `source`. With a block, yields whole chunks meanwhile.
      def run(source, flush, &block)
        return run_in_chunks(source, flush, &block) if block

        append(once(source, flush, nil))
        settle(flush)
      end

      def run_in_chunks(source, flush, &block)
        loop do
          give_chunks(&block)
          append(once(source, flush, CHUNK - (@output&.bytesize || 0)))
          source = ""
          break unless engine.status == :full
        end
        give_chunks(&block)
        settle(flush)
      end

      def give_chunks
        while @output && @output.bytesize >= CHUNK
          chunk, @output = @output.byteslice(0, CHUNK), @output.byteslice(CHUNK..)
          yield chunk
        end
      end

      def once(source, flush, limit)
        input = @input ? @input << source.b : source
        engine.run(input, flush, limit)
      ensure
        keep(input)
      end

      def keep(input)
        unread = @engine ? @engine.unread : 0
        @input = unread.zero? || input.nil? ? nil : input.byteslice(-unread, unread).force_encoding(Encoding::BINARY)
      end

      def append(made)
        @output.nil? || @output.empty? ? @output = made : @output << made
      end

      # Raises what the last run ended with, if that is an error.
      def settle(flush)
        case engine.status
        when :failed then engine.raise_failure
        when :need_dict then need_dictionary(flush)
        when :more
          raise BufError, "buffer error" if flush == FINISH
        end
      end

      def need_dictionary(_flush)
        raise NeedDict, "need dictionary"
      end

      # The output, which is kept back from a block until the stream ends: chunks are to be whole.
      def fetch
        return if block_given? && !finished?

        made, @output = @output, nil
        return made || String.new unless block_given?

        yield made unless made.nil? || made.empty?
        nil
      end
    end
  end
end
