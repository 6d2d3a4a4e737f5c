# frozen_string_literal: true

require "etc"
require "json"
require "pathname"
require "time"

# Writes the results of the Ruby benchmarks as data, in the form of result.schema.json.
module Bench
  module_function

  ROOT = File.expand_path("..", __dir__)

  # Writes rows into the file that `--json FILE` names, with the method, the machine and the versions of the peers; without
  # the option it does nothing.
  def keep(rows, **versions)
    option = ARGV.index("--json") or return
    program = File.realpath($PROGRAM_NAME)
    result = {
      program: Pathname(program).relative_path_from(ROOT), time: Time.now.utc.iso8601, machine:,
      versions: { offlock: Offlock::VERSION, ruby: RUBY_DESCRIPTION }.merge(versions.compact),
      method: head(program), rows:
    }
    File.write(ARGV.fetch(option + 1), JSON.pretty_generate(result) << "\n")
  end

  # Makes one row of a result. Figures without a contestant are about the case itself, or about a comparison.
  def row(name, figures, contestant = nil)
    { case: name, contestant:, figures: }
  end

  # Makes the rows of a table of the form case: contestant: figure: number.
  def by_contestant(table)
    table.flat_map { |name, ways| ways.map { |contestant, figures| row(name, figures, contestant) } }
  end

  # Makes the rows of a table of the form case: figure: contestant: number, or case: figure: number.
  def by_figure(table)
    table.flat_map do |name, figures|
      ways = Hash.new { |all, contestant| all[contestant] = {} }
      figures.each do |figure, values|
        (values.is_a?(Hash) ? values : { nil => values }).each { |contestant, number| ways[contestant][figure] = number }
      end
      ways.map { |contestant, numbers| row(name, numbers, contestant) }
    end
  end

  # Describes the machine. The cores are those that the program may use.
  def machine
    cpu = File.read("/proc/cpuinfo")[/model name\s*: (.*)/, 1] if File.exist?("/proc/cpuinfo")
    { architecture: RbConfig::CONFIG["host_cpu"], cpu:, cores: Etc.nprocessors, remark: nil }
  end

  # The comment at the head of a program.
  def head(program)
    lines = File.readlines(program, chomp: true).drop_while { |line| line.empty? || line.start_with?("# frozen") }
    comment = lines.find { |line| line.start_with?("#") } or return
    lines.drop(lines.index(comment)).take_while { |line| line.start_with?("#") }.join(" ").gsub(/[# ]+/, " ").strip
  end
end
