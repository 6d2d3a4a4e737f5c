# frozen_string_literal: true

module Offlock
  module Zlib
    # The methods of GzipReader that read lines. `gets` and `readline` are native, and Ruby handles all but the plain
    # next line.
    module LineReading
      def lineno = offlock_file.lineno

      def lineno=(number)
        offlock_file.lineno = number
      end

      def each_line(*arguments, chomp: false, &block)
        return to_enum(:each_line, *arguments, chomp: chomp) unless block

        offlock_file.each_line(*arguments, chomp: chomp, &block)
        self
      end
      alias each each_line

      def readlines(*arguments, chomp: false) = offlock_file.readlines(*arguments, chomp: chomp)

      private

      def offlock_read_line(*arguments, **options) = offlock_file.read_line(*arguments, **options)
    end
    private_constant :LineReading
  end
end
