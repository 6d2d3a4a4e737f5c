# frozen_string_literal: true

require "offlock/offlock"

module Offlock
  # Fields of JSON lines, without building the records. Large data is parsed off the interpreter lock, and only the wanted
  # values become Ruby objects. To turn compressed files of such lines into tokens, see {Pipeline}.
  #
  # @example
  #   texts = Offlock::JSONL.extract(data, "text")
  #   texts, ids = Offlock::JSONL.extract(data, ["text", ["meta", "id"]])
  module JSONL
    # A line that is not JSON, or is too long.
    class DecodeError < StandardError
      # @return [Integer] the number of the line, the first being 1
      attr_reader :line
      # @return [Integer] the offset in the data of the byte in question
      attr_reader :offset

      def initialize(message, line, offset)
        super(message)
        @line = line
        @offset = offset
      end
    end

    # Extracts fields of every record. Blank lines are skipped. Of equal keys the last one counts.
    # @param data [String] JSON lines in UTF-8
    # @param fields [String, Symbol, Array] a key; or an Array of which each item is a key, or an Array of the keys that
    #   lead to a field of nested objects
    # @param max_doc_bytes [Integer] the greatest length of a line in bytes
    # @param release [:auto, :always, :never] whether the lock is released
    # @return [Array] the value of each record: a String, a number, true or false, or nil where it has no such field or
    #   null; for an Array of fields, an Array of such Arrays
    # @raise [DecodeError] for a line that is not JSON or longer than +max_doc_bytes+
    # @raise [TypeError] for a line that is neither an object nor null, and for a field of another type
    # @raise [RangeError] for a wanted integer of more than 64 bits
    def self.extract(data, fields, max_doc_bytes: 64 << 20, release: :auto)
      raise ArgumentError, "max_doc_bytes must be at least 1, got #{max_doc_bytes}" if max_doc_bytes < 1

      is_single = !fields.is_a?(Array)
      paths = (is_single ? [fields] : fields).map { |field| Array(field).map { |key| checked(key) } }
      columns = extract_columns(data, paths, max_doc_bytes, release)
      is_single ? columns.first : columns
    end

    def self.checked(key)
      raise TypeError, "a key must be a String or a Symbol, got #{key.inspect}" unless key.is_a?(String) || key.is_a?(Symbol)

      key.to_s
    end

    private_class_method :extract_columns, :checked
  end
end
