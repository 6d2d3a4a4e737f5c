# frozen_string_literal: true

require_relative "lib/offlock/version"

# `rake build` evaluates this in a folder where the core and the command lie beside the extension.
Gem::Specification.new do |spec|
  spec.name = "offlock"
  spec.version = Offlock::VERSION
  spec.summary = "See the GVL and get off it: native tokenizing that lets other threads run"
  spec.description = "Drop-in tiktoken encodings and more, in Rust, whose work runs without Ruby's lock: " \
                     "in threads, in Ractors, interruptible at any moment."
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
