# frozen_string_literal: true

require "offlock/offlock"

module Offlock
  # Makes many substrings at once. Their positions are found without the interpreter lock, and they share the bytes of one
  # frozen String, copy-on-write.
  #
  # A substring of up to 15 bytes has its bytes in the object, as every short String has. A longer one takes 40 bytes,
  # however long it is, and keeps the bytes of the *whole* text allocated until it is changed or collected: use {compact}
  # when a program keeps a few of many substrings. All results are ordinary Strings: they can be changed, frozen and sent
  # to Ractors.
  #
  # A method works on the text as it is when the method is called; later changes by other threads have no effect. Large
  # texts are processed without the lock; `release:` (`:auto`, `:always`, `:never`) sets whether it is released. An
  # interrupt (`Thread#kill`, `Timeout`, Ctrl-C) ends the work promptly.
  #
  # @example
  #   Offlock::Strings.lines("one\ntwo\n", chomp: true)     #=> ["one", "two"]
  #   Offlock::Strings.split("a,b,,", ",")                  #=> ["a", "b", "", ""]
  #   Offlock::Strings.from_offsets("onetwo", [0, 3, 6])    #=> ["one", "two"]
  module Strings
    class << self
      # Returns the lines of a text, as `string.lines(chomp:)` does.
      #
      # @param string [String] in any encoding; in UTF-16 and UTF-32 `String#lines` does the work, with the lock
      # @param chomp [Boolean] whether to remove the "\n" or "\r\n" at the end of each line
      # @param release [:auto, :always, :never] whether the lock is released
      # @return [Array<String>]
      # @raise [TypeError] if string is not a String
      def lines(string, chomp: false, release: :auto)
        native_lines(string, chomp, release) || String(string).lines(chomp:)
      end

      # Returns the substrings between the separators, as `string.split(separator, -1)` does. Unlike with `split`, a space
      # as separator has no special meaning, and a text that is invalid in its encoding can be split.
      #
      # @param string [String] in any encoding; in others than UTF-8 and those of one byte per character `String#split` does
      #   the work, with the lock
      # @param separator [String] not empty
      # @param release [:auto, :always, :never] whether the lock is released
      # @return [Array<String>] one more than there are separators; none if string is empty
      # @raise [ArgumentError] if the separator is empty or invalid in its encoding
      # @raise [Encoding::CompatibilityError] if the encodings of string and separator are not compatible
      # @raise [TypeError] if string or separator is not a String
      def split(string, separator, release: :auto)
        native_split(string, separator, release) || string.split(Regexp.new(Regexp.escape(separator)), -1)
      end

      # Returns the substrings between each offset and the next one, as `string.byteslice(from...to)` does: one substring
      # fewer than there are offsets. An offset inside a character gives invalid Strings, as with `byteslice`.
      #
      # @param string [String] in any encoding
      # @param offsets [Array<Integer>, String] in bytes, not decreasing; or packed as native 64-bit numbers (`pack("q*")`),
      #   which are read fastest
      # @param release [:auto, :always, :never] whether the lock is released
      # @return [Array<String>]
      # @raise [ArgumentError] if an offset is outside of the String or less than the one before it
      # @raise [TypeError] if string is not a String, or an offset not an Integer
      def from_offsets(string, offsets, release: :auto)
        native_from_offsets(string, offsets, release)
      end

      # Returns equal Strings, each with its own bytes, so that none keeps a larger text allocated.
      #
      # @param strings [Array<String>]
      # @return [Array<String>]
      def compact(strings)
        native_compact(strings.to_a)
      end

      private :native_lines, :native_split, :native_from_offsets, :native_compact
    end
  end
end
