# frozen_string_literal: true

module Offlock
  module Zlib
    # Reads the first member of a gzip file; all members with `threads:`.
    #
    # `max_output:` is the maximum size of the output in bytes; {OutputLimitError} is raised beyond it. With `threads:`
    # other than 1 (0: one per core), all members of the file are read as one content, that many of them at once. The
    # reader then buffers, for each thread, at most 2 MB of the file and 8 MB of its content, or four times that if
    # members are large, in addition to the requested bytes. The header is that of the first member.
    #
    # `progress:` is called with the number of bytes read from the file, and its size if it has one.
    class GzipReader < GzipFile
      include Enumerable
      include LineReading
      include Reading

      class << self
        def open(path, **options, &block)
          wrap(File.open(path, "rb"), **options, &block)
        end

        # Decompresses all members of the file in `io`: returns one binary String, or yields line by line to a block.
        # `threads:` is as for `new`.
        def zcat(io, threads: 1, max_output: nil, **options, &block)
          plain = block ? nil : String.new
          each_file(io, threads: threads, max_output: max_output, **options) do |file|
            next file.each(&block) if block

            made = file.read.force_encoding(Encoding::BINARY)
            plain = plain.empty? ? made : plain << made
          end
          options[:external_encoding] ? plain&.force_encoding(options[:external_encoding]) : plain
        end

        # The contents of a gzip file in a String, read with these options.
        def unpack(string, **options) = wrap(StringIO.new(string), external_encoding: Encoding::BINARY, **options, &:read)

        private

        # Yields one reader of all members, or, on one thread, a reader of each member.
        def each_file(io, threads:, **options, &block)
          return one_by_one(io, **options, &block) if threads == 1

          reader = new(io, threads: threads, **options)
          yield reader
          reader.finish
        end

        def one_by_one(io, max_output:, progress: nil, **options)
          lead = nil
          before = 0
          report = progress && ->(done, total) { progress.call(before + done, total) }
          loop do
            member = new(io, lead: lead, max_output: max_output, progress: report, **options)
            yield member
            max_output -= member.pos if max_output
            lead = member.unused
            member.finish
            before += member.__send__(:offlock_file).packed_size
            break if lead.nil? && (lead = io.read(1)).nil?
          end
        end
      end

      # The bytes after the member, as far as they were read from the file, or nil.
      def unused = @offlock_file&.unused

      private

      # For any options: `new` without options is native.
      def offlock_open_with(io, lead: nil, **options)
        file = GzipInput.new(io, **options)
        @offlock_file = file
        @offlock_plain = file.plain
        offlock_keep_path(io.path) if io.respond_to?(:path)
        file.start(lead)
      end
    end
  end
end
