# frozen_string_literal: true

require "tmpdir"
require "zlib"
require_relative "test_helper"

# Programs that require one part of offlock only, and the example that does so.
class PartsTest < Minitest::Test
  include Texts

  LIBRARY = File.expand_path("../lib/offlock", __dir__)
  # `offlock trace` has programs require these, which start the trace.
  STARTERS = %w[autotrace autotrace_processes].freeze
  PARTS = Dir["#{LIBRARY}/*.rb"].map { |file| File.basename(file, ".rb") } - STARTERS

  PARTS.each do |part|
    define_method(:"test_#{part}_can_be_required_alone") do
      output, status = run_ruby("print 'fine'", libraries: ["offlock/#{part}"])
      assert_equal ["fine", 0], [output, status.exitstatus]
    end
  end

  def test_the_example_counts_the_tokens_of_logs
    Dir.mktmpdir do |folder|
      Zlib::GzipWriter.open("#{folder}/app.log.gz") { |file| 3.times { |number| file.puts("GET /#{number} 200") } }
      program = File.expand_path("../../examples/pipeline/log_statistics.rb", __dir__)
      output, status = run_ruby("ARGV.replace([#{folder.dump}])\nload #{program.dump}", libraries: [])
      assert_predicate status, :success?, output
      tokens = Array.new(3) { |number| Offlock::Tiktoken.get_encoding(:o200k_base).count("GET /#{number} 200") }
      assert_match(/^ +3 +30 +#{tokens.sum}  all$/, output)
      assert_includes output, "the longest #{tokens.max}"
    end
  end
end
