# frozen_string_literal: true

module Offlock
  module Tokenizers
    # A tokenizer with the calls of the gem +tokenizers+. Its vocabulary never changes; padding and truncation may be set, as
    # in the gem, and are not to be changed while another thread encodes.
    class Tokenizer
      # Settings of the file itself, which few files have.
      SETTINGS = /"(?:truncation|padding)"\s*:\s*\{/
      NO_TEMPLATE = [[].freeze, [].freeze].freeze
      private_constant :SETTINGS, :NO_TEMPLATE

      class << self
        # Reads a +tokenizer.json+.
        # @param path [String, Pathname]
        # @return [Tokenizer]
        # @raise [Error] if it cannot be read, or is not byte-level byte pair encoding; the message names what is missing
        def from_file(path)
          from_str(File.binread(path))
        rescue SystemCallError => e
          raise Error, e.message
        end

        # Reads the content of a +tokenizer.json+.
        # @param json [String]
        # @return (see from_file)
        # @raise (see from_file)
        def from_str(json) = new(json)

        # Reads the +tokenizer.json+ of a model's folder. Nothing is downloaded, so the identifier must be a folder's path.
        # @param identifier [String] the folder
        # @return (see from_file)
        # @raise (see from_file)
        def from_pretrained(identifier, revision: "main", auth_token: nil) # rubocop:disable Lint/UnusedMethodArgument
          unless File.directory?(identifier)
            raise Error, "no folder #{identifier} here: nothing is downloaded, so pass the folder of a model"
          end

          from_file(File.join(identifier, "tokenizer.json"))
        end
      end

      # @return [Hash{String => Object}, nil] the settings of {#enable_truncation}, nil if texts are not cut
      attr_reader :truncation
      # @return [Hash{String => Object}, nil] the settings of {#enable_padding}, nil if encodings are not filled up
      attr_reader :padding

      # @private
      def initialize(json)
        @json = json.dup.force_encoding(::Encoding::UTF_8).freeze
        @tokenizer = Offlock::Tokenizer.from_bytes(@json)
        @template = template
        read_settings if SETTINGS.match?(@json)
      rescue ArgumentError => e
        raise Error, e.message
      end

      # Converts a text to tokens.
      # @param sequence [String]
      # @param add_special_tokens [Boolean] whether the tokens of the model's template go before and after the text
      # @return [Encoding]
      # @raise [ArgumentError] for a pair of texts, or words that were separated before
      # @raise [EncodingError] if the text cannot be read as UTF-8
      def encode(sequence, pair = nil, is_pretokenized: false, add_special_tokens: true)
        refuse(pair, is_pretokenized)
        ids = @tokenizer.encode(sequence, add_special_tokens: false)
        filled([encoding_of(sequence, ids, add_special_tokens)]).first
      end

      # Converts many texts to tokens, on all processors.
      # @param input [Array<String>]
      # @param (see #encode)
      # @return [Array<Encoding>]
      # @raise (see #encode)
      def encode_batch(input, is_pretokenized: false, add_special_tokens: true)
        batch(input, is_pretokenized, add_special_tokens, offsets: true)
      end

      # Converts many texts to tokens without offsets, which are all +[0, 0]+.
      # @param (see #encode_batch)
      # @return (see #encode_batch)
      # @raise (see #encode_batch)
      def encode_batch_fast(input, is_pretokenized: false, add_special_tokens: true)
        batch(input, is_pretokenized, add_special_tokens, offsets: false)
      end

      # Converts tokens to text. Bytes that are no UTF-8 become U+FFFD.
      # @param ids [Array<Integer>]
      # @param skip_special_tokens [Boolean] whether to leave special tokens out
      # @return [String]
      def decode(ids, skip_special_tokens: true) = @tokenizer.decode(ids, skip_special_tokens: skip_special_tokens)

      # Converts the tokens of many texts to text.
      # @param sequences [Array<Array<Integer>>]
      # @param (see #decode)
      # @return [Array<String>]
      def decode_batch(sequences, skip_special_tokens: true)
        sequences.map { |ids| decode(ids, skip_special_tokens: skip_special_tokens) }
      end

      # Cuts texts from now on.
      # @param max_length [Integer] the maximum number of tokens, with those of the template
      # @param stride [Integer] the number of tokens that each part repeats from the one before
      # @param strategy [String] "longest_first" or "only_first", which are the same for one text
      # @param direction [String] the side that is cut: "right" or "left"
      # @raise [ArgumentError] if a setting is not valid
      def enable_truncation(max_length, **options)
        settings = Layout.truncation(max_length, **options)
        room = settings["max_length"] - num_special_tokens_to_add(false)
        if settings["stride"].positive? && settings["stride"] >= room
          raise ArgumentError, "stride must be less than the #{room} tokens that the template leaves"
        end

        @truncation = settings
        nil
      end

      # Cuts no texts from now on.
      def no_truncation = @truncation = nil

      # Fills encodings up from now on: those of a batch to the longest of them.
      # @param direction [String] the side that is filled: "right" or "left"
      # @param length [Integer, nil] the size to fill to, instead of that of the longest encoding
      # @param pad_to_multiple_of [Integer, nil] a number of which the size is a multiple
      # @param pad_id [Integer] the token
      # @param pad_type_id [Integer] its type
      # @param pad_token [String] its name
      # @raise [ArgumentError] if a setting is not valid
      def enable_padding(**options)
        @padding = Layout.padding(**options)
        nil
      end

      # Fills no encodings up from now on.
      def no_padding = @padding = nil

      # @param is_pair [Boolean] must be false
      # @return [Integer] the number of tokens of the model's template
      # @raise [ArgumentError] for a pair of texts
      def num_special_tokens_to_add(is_pair)
        refuse(is_pair, false)
        @template.sum(&:size)
      end

      # @return [Integer, nil] the token that the model's vocabulary writes like this
      def token_to_id(token) = @tokenizer.token_to_id(token)

      # @return [String, nil] how the model's vocabulary writes a token
      def id_to_token(id) = @tokenizer.id_to_token(id)

      # Returns the vocabulary. This reads the JSON again, which takes a part of a second with the lock held.
      # @param with_added_tokens [Boolean]
      # @return [Hash{String => Integer}]
      def vocab(with_added_tokens: true)
        vocab = file.fetch("model").fetch("vocab")
        with_added_tokens ? vocab.merge(@tokenizer.added_tokens) : vocab
      end

      # Returns the number of tokens. Without the added ones, this reads the JSON again, as {#vocab} does.
      # @param with_added_tokens [Boolean]
      # @return [Integer]
      def vocab_size(with_added_tokens: true)
        with_added_tokens ? @tokenizer.vocab_size : vocab(with_added_tokens: false).size
      end

      # Returns the added tokens by their numbers. This reads the JSON again, as {#vocab} does.
      # @return [Hash{Integer => AddedToken}]
      def added_tokens_decoder
        added = file.fetch("added_tokens", []).to_h do |token|
          settings = token.slice("single_word", "lstrip", "rstrip", "normalized", "special").transform_keys(&:to_sym)
          [token_to_id(token["content"]), AddedToken.new(token["content"], **settings)]
        end
        added.sort.to_h
      end

      # @return [String]
      def inspect = "#<#{self.class} with #{vocab_size} tokens>"

      private

      def file
        require "json" # few programs need it here
        JSON.parse(@json)
      end

      # The tokens before and after those of a text.
      def template
        text = "a"
        ids, offsets = @tokenizer.encode_with_offsets(text)
        before = offsets.take_while { |place| place == [0, 0] }.size
        after = before + @tokenizer.count(text, add_special_tokens: false)
        [ids.take(before).freeze, ids.drop(after).freeze].freeze
      end

      def read_settings
        truncation, padding = file.values_at("truncation", "padding")
        enable_truncation(truncation["max_length"], **truncation_options(truncation)) if truncation
        enable_padding(**padding_options(padding)) if padding
      end

      def truncation_options(settings)
        names = { "LongestFirst" => "longest_first", "OnlyFirst" => "only_first", "OnlySecond" => "only_second" }
        { stride: settings.fetch("stride", 0), strategy: names.fetch(settings["strategy"], "longest_first"),
          direction: settings.fetch("direction", "Right").downcase }
      end

      def padding_options(settings)
        strategy = settings["strategy"]
        { length: strategy.is_a?(Hash) ? strategy["Fixed"] : nil, direction: settings.fetch("direction", "Right").downcase,
          **settings.slice("pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token").transform_keys(&:to_sym) }
      end

      def refuse(pair, is_pretokenized)
        raise ArgumentError, "pairs of texts are not supported" if pair
        raise ArgumentError, "words that were separated before are not supported" if is_pretokenized
      end

      def batch(input, is_pretokenized, add_special_tokens, offsets:)
        refuse(nil, is_pretokenized)
        all = @tokenizer.encode_batch(input, add_special_tokens: false)
        filled(input.zip(all).map { |text, ids| encoding_of(text, ids, add_special_tokens, offsets: offsets) })
      end

      def encoding_of(text, ids, add_special_tokens, offsets: true)
        template = add_special_tokens ? @template : NO_TEMPLATE
        # The text may be changed before its offsets are asked for.
        Encoding.of(@tokenizer, text.dup.freeze, ids, parts(ids.size, template), template, offsets: offsets)
      end

      def parts(size, template)
        return [0...size] unless truncation

        room = [truncation["max_length"] - template.sum(&:size), 0].max
        if size > room && truncation["strategy"] == "only_second"
          raise Error, "the truncation is for the second of two texts, and there is one"
        end

        Layout.parts(size, room, truncation)
      end

      def filled(encodings)
        if padding
          size = Layout.padded_size(encodings.map(&:size).max || 0, padding)
          encodings.each { |encoding| encoding.fill(size, padding) }
        end
        encodings
      end
    end
  end
end
