# frozen_string_literal: true

require "tmpdir"
require "offlock"
require_relative "zlib_cases"

# Runs every case of ZlibCases under one hardship: zlib_hardships.rb NAME SEED. Prints failures; the only good output is "done".
module ZlibHardships
  ALLOWED = [
    Zlib::Error, ThreadError, IOError, TypeError, ArgumentError, RangeError, SystemStackError, SystemCallError,
    Offlock::Zlib::InProgressError
  ].freeze

  class Interrupt < RuntimeError; end

  module_function

  def each_case
    ZlibCases::ALL.each_key.with_index do |name, index|
      yield name, index
    rescue Interrupt
      next # between two cases
    rescue Exception => e # rubocop:disable Lint/RescueException
      puts "#{name}: #{e.class}: #{e.message}", e.backtrace.first(5)
    end
  end

  def compare(name, expected, found)
    puts "#{name}: #{found.inspect[0, 200]} instead of #{expected.inspect[0, 200]}" unless expected == found
  end

  # The collector runs at each allocation; the inputs are not frozen.
  def stress(_random)
    expected = ZlibCases::ALL.each_key.with_index.to_h do |name, index|
      [name, ZlibCases.run(index, data: ZlibCases.data(12))]
    end
    each_case do |name, index|
      data = ZlibCases.data(12)
      GC.stress = true
      found = ZlibCases.run(index, data: data)
      GC.stress = false
      compare(name, expected[name], found)
    ensure
      GC.stress = false
    end
  end

  # Objects move at any time.
  def compaction(_random)
    GC.auto_compact = true if GC.respond_to?(:auto_compact=)
    each_case do |name, index|
      expected = ZlibCases.run(index)
      compare(name, expected, ZlibCases.run(index, hook: ->(*) { GC.start }))
      GC.compact if GC.respond_to?(:compact)
    end
  end

  def ractor(_random)
    each_case do |name, index|
      found = Ractor.new(index) { |number| ZlibCases.run(number) }.value
      compare(name, ZlibCases.run(index), found)
    end
  end

  # Calls that the program's own code may make on the object that called it.
  METHODS = [
    [:reset], [:close], [:finish], [:flush], [:read], [:read, 3], [:gets], [:getc], [:rewind], [:eof?], [:ungetc, "x"],
    [:write, "more"],
    [:<<, "more"], [:deflate, "more"], [:inflate, "more"], [:params, 1, 0], [:set_dictionary, "x"], [:sync, "more"],
    [:lineno=, 7],
    [:flush_next_in], [:flush_next_out], [:avail_out=, 5], [:print, "x"], [:puts, "x"], [:crc], [:pos], [:unused], [:dup], [:close]
  ].freeze

  def callbacks(random)
    each_case do |name, index|
      30.times { call_back(name, index, random) }
    end
  end

  # In one of its callbacks the program calls a method of the object that called it, or of another one of its kind.
  def call_back(name, index, random)
    within = false
    due = random.rand(8)
    hook = lambda do |*objects|
      due -= 1
      next if within || due.positive?

      within = true
      due = random.rand(8)
      kinds = [Offlock::Zlib::GzipFile, Offlock::Zlib::ZStream]
      objects += kinds.flat_map { |kind| ObjectSpace.each_object(kind).to_a.last(3) }
      call = METHODS.sample(random: random)
      objects.select { _1.respond_to?(call[0]) }.each { |object| quietly { object.public_send(*call) } }
    ensure
      within = false
    end
    quietly { ZlibCases.run(index, hook: hook) }
  rescue StandardError => e
    puts "#{name}: #{e.class}: #{e.message}", e.backtrace.first(5)
  end

  def quietly
    yield
  rescue *ALLOWED, NoMethodError => e
    raise if e.is_a?(NoMethodError) && e.backtrace.first(1).grep(%r{lib/offlock}).any? && !e.message.include?("closed")
  end

  # Another thread changes the inputs all the time.
  def changes(random)
    data = ZlibCases.data(800)
    going = true
    changer = Thread.new do
      while going
        data.replace(ZlibCases.data(random.rand(1..900)))
        data.setbyte(random.rand(data.bytesize), 65)
        Thread.pass
      end
    end
    each_case do |_, index|
      3.times { quietly { ZlibCases.run(index, data: data) } }
    end
    going = false
    changer.join
  end

  # A child process sends an interrupt every few milliseconds; a thread of this process would have to wait for the lock.
  def interrupts(random)
    armed = false
    trap("USR1") { raise Interrupt, "now" if armed }
    parent, seed = Process.pid, random.rand(1000)
    child = fork { Random.new(seed).then { |times| loop { sleep(times.rand * 0.004) && Process.kill("USR1", parent) } } }
    each_case do |name, index|
      ZlibCases.run(index) # Ruby 3.3 itself does not survive an interrupt while it loads a transcoder
      2.times do
        armed = true
        loop { quietly { ZlibCases.run(index, data: ZlibCases.data(300)) } }
      rescue Interrupt
        next
      ensure
        armed = false
      end
      compare(name, ZlibCases.run(index), ZlibCases.run(index))
    end
  ensure
    Process.kill("KILL", child)
    Process.wait(child)
  end
end

ZlibHardships.public_send(ARGV[0], Random.new(Integer(ARGV[1])))
puts "done"
