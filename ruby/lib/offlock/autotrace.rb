# frozen_string_literal: true

# Starts the trace that `offlock trace` asked for; RUBYOPT makes Ruby require this file. A program that cannot be
# traced runs without a trace. Rubies of any version read this file, also those that the extension is not built for,
# so its syntax must be old.
require "rbconfig"

made_for = ENV.fetch("OFFLOCK_RUBY", nil)
this = [RUBY_ENGINE, RbConfig::CONFIG["ruby_version"], RbConfig::CONFIG["arch"]].join(" ")
if made_for && made_for != this
  warn "offlock: #{RbConfig.ruby} is not traced: this offlock is made for #{made_for}, and this is #{this}"
  # The program may require its own offlock, which must not be this one.
  ENV["OFFLOCK_RUBYLIB"].to_s.split(File::PATH_SEPARATOR).each { |folder| $LOAD_PATH.delete(folder) }
else
  begin
    require "offlock"
    require "offlock/autotrace_processes"
  rescue LoadError, SystemCallError, IOError => e
    warn "offlock: #{RbConfig.ruby} is not traced: #{e.message}"
  end
end
