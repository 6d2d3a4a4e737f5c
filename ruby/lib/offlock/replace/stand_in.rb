# frozen_string_literal: true

require "offlock"

module Offlock
  # Replaces the original modules by offlock's, for "offlock/replace" and its parts.
  module StandIn
    # A folder of empty files with the names of the originals' files.
    FEATURES = File.join(__dir__, "features")
    private_constant :FEATURES

    class << self
      # Sets the top-level constant +name+ to +ours+. Classes that derive from the original's, and references to the
      # original in other constants, stay with the original. +rescue+ of its exceptions also rescues ours.
      #
      # @return [Module, nil] the original, if it was loaded
      def put(name, ours)
        loaded = Object.const_defined?(name, false) && !Object.autoload?(name, false)
        original = Object.const_get(name, false) if loaded
        return if ours.equal?(original)

        # `const_set` replaces in one step: other threads never find the constant undefined.
        without_warnings { Object.const_set(name, ours) }
        rescue_ours(original, ours) if original
        original
      end

      # Makes `require` of the original's files do nothing from now on. Libraries that resolve names themselves, such as
      # Bootsnap, find empty files with these names on the load path. If a program replaces the load path, Ruby finds
      # the names in $LOADED_FEATURES.
      def provide(library)
        folder = File.join(FEATURES, library)
        $LOAD_PATH.unshift(folder)
        files = Dir.glob("**/*.rb", base: folder)
        files.each { |file| require file.delete_suffix(".rb") }
        $LOADED_FEATURES.concat(files)
      end

      def without_warnings
        verbose, $VERBOSE = $VERBOSE, nil
        yield
      ensure
        $VERBOSE = verbose
      end

      private

      def rescue_ours(original, ours)
        original.constants.each do |name|
          theirs = original.const_get(name)
          next unless theirs.is_a?(Class) && theirs <= Exception && ours.const_defined?(name, false)

          our_error = ours.const_get(name)
          next if theirs.equal?(our_error)

          theirs.define_singleton_method(:===) { |error| super(error) || (equal?(theirs) && error.is_a?(our_error)) }
        end
      end
    end
  end
  private_constant :StandIn
end
