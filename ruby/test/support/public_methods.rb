# frozen_string_literal: true

# Lists the public methods that the signatures in sig have: "Offlock::Strings.lines", "Offlock::MessagePack::Packer#write".
module PublicMethods
  SIGNATURES = File.expand_path("../../sig/offlock", __dir__)

  module_function

  # Returns those in a file of signatures, without `new`, which Ruby calls in its own ways.
  def in(file)
    scopes = []
    private = [false]
    File.foreach("#{SIGNATURES}/#{file}.rbs").map do |line|
      case line
      when /^\s*module \S+ = / then nil # another name of a module
      when /^\s*(?:module|class|interface) (\S+)/
        scopes.push(Regexp.last_match(1)[/\w+/])
        private.push(false)
      when /^\s*end$/
        scopes.pop
        private.pop
      when /^\s*private$/ then private[-1] = true
      when /^\s*(?:def|attr_reader|attr_accessor) (self\.)?([\w?!]+|<<|\[\]|==): /
        named(scopes, *Regexp.last_match.captures, private.last)
      end
    end.grep(String).uniq
  end

  def named(scopes, singleton, name, private)
    return if private || name.match?(/\Anative_|\A(initialize|new)\z/) || scopes.last.start_with?("_")

    scopes.join("::") + (singleton ? "." : "#") + name
  end
end
