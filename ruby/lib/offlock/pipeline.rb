# frozen_string_literal: true

require "offlock/offlock"

module Offlock
  # From compressed shards of documents to token counts, batches or files, without the interpreter lock.
  #
  # {read} names shards of JSON lines, MessagePack maps or text, which may be compressed with gzip or Zstandard, or of
  # Parquet. They are read, decompressed, parsed and encoded in one pass on several threads, while the threads of the
  # program run. No Ruby object is made of a document, and memory does not grow with the size of the shards. The command
  # +offlock tokens+ does the same from a shell.
  #
  # @example
  #   tokens = Offlock::Pipeline.read("corpus/").field("text").tokens(:o200k_base)
  #   tokens.count.tokens
  #   tokens.write("out/", output: :megatron)
  #   tokens.each { |batch| batch.packed }
  module Pipeline
    # Finds the shards to read. Their content is read later.
    # @param paths [Array<String, Pathname>] files, or folders of shards
    # @param format [:jsonl, :msgpack, :lines, :text, :parquet, nil] what the shards hold; nil if their names or contents
    #   tell it
    # @param max_doc_bytes [Integer] the greatest length of a record in bytes; a longer one fails
    # @param on_error [:fail, :skip, :report] what happens to records that fail: the first one raises, they are left out
    #   and counted, or the results have their errors as well
    # @param threads [Integer, nil] the most threads that work; nil for one per processor
    # @return [Corpus]
    # @raise [SystemCallError] for a path that is not there
    # @raise [ArgumentError] for a folder without shards
    def self.read(*paths, format: nil, max_doc_bytes: 64 << 20, on_error: :fail, threads: nil)
      raise ArgumentError, "max_doc_bytes must be at least 1, got #{max_doc_bytes}" if max_doc_bytes < 1
      raise ArgumentError, "threads must be at least 1, got #{threads}" if threads && threads < 1

      shards = Shards.find(paths.flatten.map(&:to_s))
      Corpus.new(shards, ["text"], [format, max_doc_bytes, on_error, threads || 0])
    end

    # A record or a shard that cannot be read.
    class RecordError < StandardError
      # @return [String] the shard's file
      attr_reader :path
      # @return [Integer, nil] the number of the record, the first being 1; in formats of lines, that of the line
      attr_reader :record
      # @return [Integer, nil] the offset of the record's first byte in the decompressed data; for Parquet, that of the page
      #   with its text in the file
      attr_reader :offset

      # @private
      def initialize(message, path, record, offset)
        super(message)
        @path = path
        @record = record
        @offset = offset
      end
    end

    private_constant :Shards

    # Shards, and which of their fields has the text. Frozen.
    class Corpus
      # @private
      def initialize(shards, field, options)
        @shards = shards
        @field = field.freeze
        @options = options.freeze
        freeze
      end

      # @return [Array<String>] the files, in the order in which they are read
      def paths
        @shards.paths
      end

      # @return [Integer] the size of the files in bytes
      def size
        @shards.size
      end

      # Takes the text from another field: <tt>field("data", "text")</tt> is the field +text+ of the map in +data+. Of
      # equal keys the last one counts. Formats without records have no fields.
      # @param keys [Array<String>] the keys that lead to the text
      # @return [Corpus]
      def field(*keys)
        raise ArgumentError, "field takes the keys that lead to the text" if keys.empty?

        Corpus.new(@shards, keys.map(&:to_s), @options)
      end

      # Chooses what encodes the texts. The texts of special tokens are ordinary text, and a tokenizer's template is not
      # applied.
      # @param encoding [Symbol, String, nil] the name of a public encoding (default: +o200k_base+)
      # @param model [String, nil] instead, the name of an OpenAI model
      # @param tokenizer [Tokenizer, String, Pathname, nil] instead, a model's tokenizer, its +tokenizer.json+ or
      #   +tekken.json+, or the folder that has one
      # @return [Tokens]
      # @raise [ArgumentError] for an unknown name, and for a tokenizer that cannot be used
      # @raise [SystemCallError] if there is no such file
      def tokens(encoding = nil, model: nil, tokenizer: nil)
        Tokens.make(@shards, @field, *@options, encoding&.to_s, model&.to_s,
                    tokenizer.is_a?(Tokenizer) ? tokenizer : tokenizer&.to_s)
      end

      # @return [String]
      def inspect
        "#<#{self.class} of #{paths.size} shards, #{size} bytes>"
      end
    end

    # The tokens of the documents in shards: counted, written to files, or in batches. Frozen; may be used by many threads
    # and Ractors.
    class Tokens
      include Enumerable

      class << self
        private :native_new

        # @private
        def make(...)
          native_new(...)
        end
      end

      # @return [String] the name of the encoding, or the path of the tokenizer
      # @!attribute [r] name

      # Counts the documents and their tokens.
      # @param progress [#call, nil] is called now and then, and at the end, with the bytes of the shards that have been
      #   read and those of all shards, on the calling thread; what it raises ends the call
      # @return [Summary]
      # @raise [RecordError] for the first record that fails, unless they are left out
      # @raise [SystemCallError] for a file that cannot be read
      def count(progress: nil)
        native_count(progress)
      end

      # Starts threads that encode the documents ahead, by a few batches of about 1 MB of records. They wait while nobody
      # takes a batch.
      # @return [Batches] the batches, in order
      # @!method batches

      # Calls the block with each batch, in order. The threads that encode ahead end with the call.
      # @yieldparam batch [Batch]
      # @return [Tokens, Enumerator]
      # @raise (see #count)
      def each
        return enum_for(:each) unless block_given?

        batches = self.batches
        begin
          while (batch = batches.next)
            yield batch
          end
        ensure
          batches.close
        end
        self
      end

      # Writes the tokens of each shard to files in a folder. A file gets its name when it is complete and on the disk.
      # @param folder [String, Pathname]
      # @param output [:megatron, :datatrove, :llmc, :nanogpt, :dolma, :mds, :parquet] the format of the files
      # @param eos [:append, :prepend, :none, nil] where the token that separates documents goes; nil for where the
      #   format's own writer puts it
      # @param eos_token [String] the text of that special token
      # @param resume [Boolean] whether to continue an earlier run: the shards that it finished are left alone
      # @param part [Array(Integer, Integer), nil] an index and a count: writes every count-th shard only, from that of the
      #   index on, beside other processes, which write the other parts. Finished shards are left alone. Once all parts are
      #   written, `resume: true` without `part` writes the list of all results
      # @param progress [#call, nil] as for {#count}
      # @return [Summary]
      # @raise (see #count)
      # @raise [ArgumentError] for a folder with other results, for one to which another run writes, and when the format
      #   cannot hold the vocabulary
      def write(folder, output:, eos: nil, eos_token: "<|endoftext|>", resume: false, part: nil, progress: nil)
        native_write(folder.to_s, output, eos, eos_token, resume, part, progress)
      end

      # @return [String]
      def inspect
        "#<#{self.class} of #{name}>"
      end
    end

    # The batches of documents, which threads of its own encode ahead. Threads and Ractors can share it. The threads end
    # when it is closed or collected.
    class Batches
      # Returns the next batch.
      # @return [Batch, nil] nil behind the last one, after an error and after {#close}
      # @raise (see Tokens#count)
      # @!method next

      # Ends the threads. Batches that were not taken are dropped.
      # @return [nil]
      # @!method close

      # @return [Integer] the number of bytes of the shards that have been read so far, as they are on the disk
      # @!attribute [r] bytes_read

      # @return [Integer] the size of all shards in bytes
      # @!attribute [r] bytes_total

      # @return [String]
      def inspect
        "#<#{self.class} #{bytes_read} of #{bytes_total} bytes read>"
      end
    end

    # The documents of about 1 MB of records of one shard. Frozen.
    class Batch
      # @return [String] the shard's file
      # @!attribute [r] path

      # @return [Integer] the number of documents
      # @!attribute [r] size

      # @return [Integer] the bytes of their texts
      # @!attribute [r] bytes

      # @return [Integer] how many records between the documents failed and were left out
      # @!attribute [r] failed

      # @return [Array<RecordError>] what is wrong with them, with <tt>on_error: :report</tt>; at most 1,000 are kept
      # @!attribute [r] failures

      # @return [String] the tokens of all documents, one document after the other: 4 bytes each in the machine's order
      # @!attribute [r] packed

      # @return [Array<Integer>] where each document begins among the tokens, and the end of the last one
      # @!attribute [r] offsets

      # @return [Array<Integer>] the number of each document's record in the shard, the first being 1; in formats of
      #   lines, that of the line
      # @!attribute [r] records

      # @return [Array<Array<Integer>>] the tokens of each document
      # @!method to_a

      # @return [String]
      def inspect
        "#<#{self.class} of #{size} documents of #{path}>"
      end
    end

    # What a run over shards found out. Frozen.
    class Summary
      # @return [Integer] how many documents were encoded
      # @!attribute [r] documents

      # @return [Integer] the bytes of their texts
      # @!attribute [r] bytes

      # @return [Integer] their tokens, with those put before and after documents
      # @!attribute [r] tokens

      # @return [Integer] how many records failed and were left out, and how many shards could not be read to their end
      # @!attribute [r] failed

      # @return [Array<RecordError>] what is wrong with them, with <tt>on_error: :report</tt>; at most 1,000 are kept
      # @!attribute [r] failures

      # @return [Integer] how many shards an earlier run had finished
      # @!attribute [r] resumed

      # @return [Integer] the tokens of the longest document
      # @!attribute [r] longest

      # Returns the least number of tokens that at least +percent+ of the documents do not exceed; 0 without documents.
      # @param percent [Numeric] from 0 to 100
      # @return [Integer]
      # @raise [ArgumentError] if it is not
      # @!method percentile(percent)

      # @return [Array<ShardSummary>] the shards in their order
      # @!attribute [r] shards

      # @return [String]
      def inspect
        "#<#{self.class} of #{documents} documents, #{bytes} bytes, #{tokens} tokens, #{failed} failed>"
      end
    end

    # What became of one shard. Frozen.
    class ShardSummary
      # @return [String] the file that was read
      # @!attribute [r] path

      # @return [Integer] how many documents were encoded
      # @!attribute [r] documents

      # @return [Integer] the bytes of their texts
      # @!attribute [r] bytes

      # @return [Integer] their tokens, with those put before and after documents
      # @!attribute [r] tokens

      # @return [Integer] how many records failed and were left out
      # @!attribute [r] failed

      # @return [Array<String>] the names of the files that were written, below the folder
      # @!attribute [r] files

      # @return [String]
      def inspect
        "#<#{self.class} of #{path}: #{documents} documents, #{tokens} tokens, #{failed} failed>"
      end
    end
  end
end
