# frozen_string_literal: true

module Offlock
  module Zlib
    # How arguments and text are converted, in GzipStream and its like for other formats.
    module Conversions
      private

      def string_of(object)
        String.try_convert(object) or
          raise TypeError, "no implicit conversion of #{Zlib.send(:kind_of_object, object)} into String"
      end

      def number_of(object) = object.is_a?(Integer) ? object : Zlib.send(:native_int, object)

      # Encodings from the options that IO takes.
      def take_encodings(options)
        return if options.empty?

        external, internal = options.values_at(:external_encoding, :internal_encoding)
        external, internal = options[:encoding].split(":", 2) if options[:encoding].is_a?(String)
        external = options[:encoding] if options[:encoding].is_a?(Encoding)
        @external = find_encoding(external)
        @internal = find_encoding(internal) || (@external && Encoding.default_internal)
        @internal = nil if @internal == @external
        @convert = options.slice(:invalid, :undef, :replace, :fallback, :xml, :cr_newline, :crlf_newline,
                                 :universal_newline, :newline)
      end

      # The string in another encoding; nil if it cannot be converted, in which case the original leaves it unchanged.
      def converted(string, encoding)
        string.encode(encoding, **@convert)
      rescue EncodingError
        nil
      end

      def find_encoding(encoding)
        return encoding unless encoding.is_a?(String)

        encoding == "-" ? nil : Encoding.find(encoding.sub(/\Abom\|/i, ""))
      end
    end
    private_constant :Conversions
  end
end
