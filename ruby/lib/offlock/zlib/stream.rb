# frozen_string_literal: true

module Offlock
  module Zlib
    # Admits one thread at a time to a stream. If a block calls the stream that called it, the call raises the exception of
    # the original: ThreadError from Ruby 3.4 on, InProgressError before.
    class StreamMutex < Thread::Mutex
      if RUBY_VERSION < "3.4"
        def synchronize
          raise InProgressError, "zstream is in progress" if owned?

          super
        end
      end
    end
    private_constant :StreamMutex

    # The common part of Deflate and Inflate: an engine, input that it has not read yet, and output that was not fetched
    # yet.
    class ZStream
      def initialize_copy(other)
        super
        @offlock_engine = other.offlock_engine.copy
        @offlock_input = other.offlock_input&.dup
        @offlock_output = other.offlock_output&.dup
        @offlock_mutex = nil
      end

      def avail_in = @offlock_input ? @offlock_input.bytesize : 0
      def avail_out = @offlock_avail_out || 0

      # Has no effect: output grows as needed.
      def avail_out=(size)
        @offlock_avail_out = Zlib.send(:native_int, size) & 0xffffffff
      end

      def total_in = offlock_engine.total_in
      def total_out = offlock_engine.total_out
      def adler = offlock_engine.adler
      def data_type = offlock_engine.data_type
      def finished? = offlock_engine.ended?
      def closed? = @offlock_engine.nil?
      alias stream_end? finished?
      alias inspect to_s
      alias ended? closed?

      # Ends the stream and returns the rest of its output, or yields it.
      def finish(&block)
        offlock_mutex.synchronize do
          offlock_run("", FINISH, &block)
          offlock_fetch(&block)
        end
      end

      def flush_next_in
        rest, @offlock_input = @offlock_input, nil
        rest || String.new
      end

      def flush_next_out(&block)
        offlock_mutex.synchronize { offlock_fetch(&block) }
      end

      def reset
        offlock_engine.reset
        @offlock_input = @offlock_output = nil
      end

      def close
        offlock_engine.close
        @offlock_engine = @offlock_input = nil
      end
      alias end close

      # Processes `string` and ends the stream. Calls `progress` after each megabyte with the number of bytes done.
      def offlock_in_steps(string, progress, &block)
        string = offlock_text(string)
        made = block ? nil : String.new
        take = block || ->(chunk) { made << chunk }
        done = 0
        while done < string.bytesize
          piece = string.byteslice(done, STEP)
          done += piece.bytesize
          offlock_step(piece, &take)
          progress&.call(done, string.bytesize)
        end
        finish(&take)
        made
      end

      protected

      attr_reader :offlock_input, :offlock_output

      def offlock_engine
        @offlock_engine or raise Error, "stream is not ready"
      end

      def offlock_mutex
        @offlock_mutex || (offlock_engine && Zlib.send(:native_mutex, self, StreamMutex))
      end

      private

      # The number of input bytes between two calls of a `progress:` callback.
      STEP = 1 << 20
      private_constant :STEP

      def offlock_start(engine)
        @offlock_engine = engine
        @offlock_input = @offlock_output = @offlock_mutex = nil
      end

      def offlock_text(object)
        String.try_convert(object) or
          raise TypeError, "no implicit conversion of #{Zlib.send(:kind_of_object, object)} into String"
      end

      # Processes the remaining input and `source`. With a block, yields full chunks in the meantime.
      def offlock_run(source, flush, &block)
        return offlock_run_in_chunks(source, flush, &block) if block

        offlock_append(offlock_once(source, flush, nil))
        offlock_settle(flush)
      end

      def offlock_run_in_chunks(source, flush, &block)
        loop do
          offlock_give_chunks(&block)
          offlock_append(offlock_once(source, flush, CHUNK - (@offlock_output&.bytesize || 0)))
          source = ""
          break unless offlock_engine.status == :full
        end
        offlock_give_chunks(&block)
        offlock_settle(flush)
      end

      def offlock_give_chunks
        while @offlock_output && @offlock_output.bytesize >= CHUNK
          chunk, @offlock_output = @offlock_output.byteslice(0, CHUNK), @offlock_output.byteslice(CHUNK..)
          yield chunk
        end
      end

      def offlock_once(source, flush, limit)
        input = @offlock_input ? @offlock_input << source.b : source
        offlock_engine.run(input, flush, limit)
      ensure
        offlock_keep(input)
      end

      def offlock_keep(input)
        unread = @offlock_engine ? @offlock_engine.unread : 0
        @offlock_input = unread.zero? || input.nil? ? nil : input.byteslice(-unread, unread).force_encoding(Encoding::BINARY)
      end

      def offlock_append(made)
        @offlock_output.nil? || @offlock_output.empty? ? @offlock_output = made : @offlock_output << made
      end

      # Raises the error of the last run, if there is one.
      def offlock_settle(flush)
        case offlock_engine.status
        when :failed then offlock_engine.raise_failure
        when :need_dict then offlock_need_dictionary(flush)
        when :more
          raise BufError, "buffer error" if flush == FINISH
        end
      end

      def offlock_need_dictionary(_flush)
        raise NeedDict, "need dictionary"
      end

      # The output. With a block, the last chunk is kept until the stream ends, because chunks must be full.
      def offlock_fetch
        return if block_given? && !finished?

        made, @offlock_output = @offlock_output, nil
        return made || String.new unless block_given?

        yield made unless made.nil? || made.empty?
        nil
      end
    end
  end
end
