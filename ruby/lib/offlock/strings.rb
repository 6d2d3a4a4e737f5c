# frozen_string_literal: true

require "offlock/offlock"

module Offlock
  # Many substrings at once: where they are is found without the interpreter lock, and they share the bytes of one frozen
  # String, copy-on-write.
  #
  # A piece of up to 15 bytes has its bytes in the object, as every short String has. A longer one takes 40 bytes, however
  # long it is, and keeps the bytes of the *whole* text alive, until it is changed or collected: use {compact} for the few
  # that are kept of many. All are Strings like any others: they can be changed, frozen, sent to Ractors.
  #
  # What is in the text when a method is called counts, whatever other threads do to it meanwhile. Large texts are worked
  # on without the lock, `release:` (`:auto`, `:always`, `:never`) overrules from which size on. An interrupt
  # (`Thread#kill`, `Timeout`, Ctrl-C) ends the work promptly.
  #
  # @example
  #   Offlock::Strings.lines("one\ntwo\n", chomp: true)     #=> ["one", "two"]
  #   Offlock::Strings.split("a,b,,", ",")                  #=> ["a", "b", "", ""]
  #   Offlock::Strings.from_offsets("onetwo", [0, 3, 6])    #=> ["one", "two"]
  module Strings
    class << self
      # The lines of a text, as `string.lines(chomp:)` returns them.
      #
      # @param string [String] in any encoding; without the lock, and sharing bytes, in every one but UTF-16 and UTF-32
      # @param chomp [Boolean] whether the lines come without their "\n" or "\r\n"
      # @param release [:auto, :always, :never] whether the lock is released
      # @return [Array<String>]
      # @raise [TypeError] if string is not a String
      def lines(string, chomp: false, release: :auto)
        native_lines(string, chomp, release) || String(string).lines(chomp:)
      end

      # What lies between the separators, as `string.split(separator, -1)` returns it. Unlike there a space means just that, and
      # a broken text can be split.
      #
      # @param string [String] in any encoding; without the lock, and sharing bytes, in UTF-8 and those of one byte
      # @param separator [String] not empty
      # @param release [:auto, :always, :never] whether the lock is released
      # @return [Array<String>] one more than there are separators; none if string is empty
      # @raise [ArgumentError] if the separator is empty or broken
      # @raise [Encoding::CompatibilityError] if the separator cannot be in such a text
      # @raise [TypeError] if one of them is not a String
      def split(string, separator, release: :auto)
        native_split(string, separator, release) || string.split(Regexp.new(Regexp.escape(separator)), -1)
      end

      # The Strings between each offset and the next one, as `string.byteslice(from...to)` returns them: one fewer than there
      # are offsets. An offset inside a character leaves broken Strings, as there.
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

      # The same Strings, each with bytes of its own: they keep nothing else alive.
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
