# frozen_string_literal: true

module Offlock
  module MessagePack
    # An Array or a Hash of a message. A value is built when it is read, the rest of the message is not.
    class View
      include Enumerable

      # The number of items of the Array, or of entries of the Hash.
      attr_reader :size
      alias length size

      def initialize(index, place, options)
        @index = index
        @place = place
        @options = options
        @kind, @size = index.kind(place)
      end

      def array? = @kind == :array

      def hash? = @kind == :map

      # Returns the item at a position, or the value of a key; +nil+ if there is none. Arrays and Hashes are returned as
      # views.
      def [](key)
        place = array? ? item(key) : entry(key)
        place && value(place)
      end

      def fetch(key)
        place = array? ? item(key) : entry(key)
        return value(place) if place
        return yield(key) if block_given?

        raise array? ? IndexError.new("index #{key} outside of array of #{size}") : KeyError.new("key not found: #{key.inspect}")
      end

      def dig(key, *rest)
        found = self[key]
        rest.empty? || found.nil? ? found : found.dig(*rest)
      end

      def key?(key) = hash? && !entry(key).nil?

      def keys
        raise NoMethodError, "an array has no keys" unless hash?

        places.each_slice(2).map { |key, _| @index.build(key, @options) }
      end

      # Yields the items of an Array, or pairs of key and value of a Hash.
      def each
        return to_enum { size } unless block_given?

        if array?
          places.each { |place| yield value(place) }
        else
          places.each_slice(2) { |key, place| yield [@index.build(key, @options), value(place)] }
        end
        self
      end

      # Builds and returns the whole object.
      def build = @index.build(@place, @options)

      def inspect = "#<#{self.class} of #{hash? ? "a Hash" : "an Array"} of #{size}>"

      # Returns the value at a place of the index: a view if it is an Array or a Hash.
      def self.at(index, place, options)
        index.kind(place).first == :value ? index.build(place, options) : new(index, place, options)
      end

      private

      def value(place) = self.class.at(@index, place, @options)

      # Kept, because finding an item takes a walk over all items before it.
      def places = @places ||= @index.places(@place)

      def item(position)
        raise TypeError, "position must be an Integer, got #{position.inspect}" unless position.is_a?(Integer)

        places[position]
      end

      def entry(key)
        return @index.lookup(@place, key.name) if key.is_a?(Symbol) && @options&.[](:symbolize_keys)
        return @index.lookup(@place, key) if key.is_a?(String)

        places.each_slice(2).filter_map { |known, place| place if @index.build(known, @options).eql?(key) }.last
      end
    end

    # Returns the value of a message: a View if it is an Array or a Hash, of which nothing is built yet. A large message
    # is indexed off the lock. +options+ are those of +unpack+.
    def self.view(bytes, options = nil) = View.at(index(bytes, options&.[](:release) || :auto), 0, options)

    # Returns the Strings, numbers or booleans in one field of every record of a message that is an Array of Hashes. +path+
    # is a key, or keys of Hashes inside Hashes. A record without that field gives +nil+. No record is built; a large message
    # is searched off the lock.
    def self.extract(bytes, *path, release: :auto) = extract_column(bytes, path.map(&:to_s), release)

    # Unpacks an Array of messages. They are parsed off the lock, many with one release of it.
    def self.unpack_all(messages, options = nil)
      unpack_each(messages, options, options&.[](:release) || :auto)
    end

    class << self
      private :index, :unpack_each, :extract_column
    end
    private_constant :Index
  end
end
