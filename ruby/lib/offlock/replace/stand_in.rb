# frozen_string_literal: true

require "offlock"

module Offlock
  # Puts our modules in the place of those that they stand in for; "offlock/replace" and its parts use it.
  module StandIn
    # Files with the names of the originals', which find nothing to do.
    FEATURES = File.join(__dir__, "features")
    private_constant :FEATURES

    class << self
      # Makes the top-level constant +name+ ours. Classes that derive from the original's, and what holds these in
      # other constants, stay with the original, but its exceptions rescue ours, too.
      #
      # @return [Module, nil] the original, if it was loaded
      def put(name, ours)
        loaded = Object.const_defined?(name, false) && !Object.autoload?(name, false)
        original = Object.const_get(name, false) if loaded
        return if ours.equal?(original)

        # In one step: other threads find the one or the other, never nothing.
        without_warnings { Object.const_set(name, ours) }
        rescue_ours(original, ours) if original
        original
      end

      # From now on `require` of the original's files does nothing. What resolves names by itself, as Bootsnap does, finds files
      # with these names on the load path; where a program replaces the load path, Ruby finds them among what is loaded.
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
