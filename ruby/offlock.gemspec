# frozen_string_literal: true

require_relative "lib/offlock/version"

# `rake build` evaluates this in a folder where the core and the command lie beside the extension.
Gem::Specification.new do |spec|
  spec.name = "offlock"
  spec.version = Offlock::VERSION
  spec.summary = "Shows which threads hold the GIL or GVL and which wait for it, with drop-in libraries that work without it"
  spec.description = "#{spec.summary}: tokenizing, zlib, MessagePack and many strings at once, in Rust, " \
                     "in threads and Ractors, interruptible at any moment."
  spec.authors = ["The offlock authors"]
  spec.license = "MIT"
  spec.homepage = "https://github.com/offlock/offlock"
  spec.metadata = {
    "changelog_uri" => "#{spec.homepage}/blob/main/CHANGELOG.md",
    "source_code_uri" => spec.homepage,
    "rubygems_mfa_required" => "true"
  }

  spec.required_ruby_version = ">= 3.3"
  spec.files = Dir.glob("**/*", base: __dir__).select { |path| File.file?(File.join(__dir__, path)) }
  spec.extensions = ["ext/offlock/Cargo.toml"]
  spec.bindir = "exe"
  spec.executables = ["offlock"]
end
