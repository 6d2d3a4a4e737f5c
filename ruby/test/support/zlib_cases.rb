# frozen_string_literal: true

require "fileutils"
require "stringio"
require "tmpdir"
require_relative "ractor"

# A call of every public method of Offlock::Zlib, by its name in the signatures. `data` is an unfrozen String. `file` is the file
# under a gzip file. `hook` is called by all Ruby code of the program: by the file, by blocks and by conversions. A case returns
# the same result whenever it runs.
module ZlibCases
  Z = Offlock::Zlib
  SIGNATURES = File.expand_path("../../sig/offlock/zlib.rbs", __dir__)

  # The methods of streams, for both kinds.
  STREAM = <<~RUBY
    ZStream#avail_in: stream(data).avail_in
    ZStream#avail_out: stream(data).avail_out
    ZStream#total_in: stream(data).total_in
    ZStream#total_out: stream(data).then { |stream| stream.total_out <= data.bytesize * 3 }
    ZStream#adler: stream(data).adler
    ZStream#data_type: stream(data).data_type.class
    ZStream#finished?: stream(data).finished?
    ZStream#closed?: stream(data).closed?
    ZStream#finish: [Z.inflate(stream(data).finish), chunks(hook) { |block| stream(data).tap { hook.call(_1) }.finish(&block) }]
    ZStream#flush_next_in: stream(data).flush_next_in
    ZStream#flush_next_out: [stream(data).flush_next_out.class, stream(data).flush_next_out { |chunk| hook.call(chunk) }]
    ZStream#reset: stream(data).then { |stream| [stream.reset, stream.total_in] }
    ZStream#close: stream(data).then { |stream| [stream.close, stream.closed?] }
  RUBY

  CALLS = <<~'RUBY'.lines(chomp: true).to_h { |line| line.split(": ", 2) }
    Zlib.zlib_version: Z.zlib_version
    Zlib.deflate: [Z.inflate(Z.deflate(odd(data, hook), 6, release: :always)), Z.inflate(chunks(hook) { Z.deflate(data, 1, &_1) })]
    Zlib.inflate: Z.inflate(Z.deflate(data)).then { [_1, chunks(hook) { |block| Z.inflate(Z.deflate(data), progress: hook, &block) }] }
    Zlib.gzip: Z.gunzip(Z.gzip(odd(data, hook), level: 1, progress: nil)) + Z.gunzip(Z.gzip(data, progress: hook))
    Zlib.gunzip: [Z.gunzip(Z.gzip(data), max_output: 10**6), Z.gunzip(Z.gzip(data), progress: hook, release: :always)]
    Zlib.gunzip_all: [Z.gunzip_all(Z.gzip(data) * 3, threads: 2), Z.gunzip_all(Z.gzip(data) * 2, progress: hook)]
    Zlib.deflate_all: Z.deflate_all([data, odd(data, hook), +"x"] * 50, progress: hook).map { Z.inflate(_1) }
    Zlib.inflate_all: Z.inflate_all(Array.new(100) { Z.deflate(data) }, threads: 2, progress: hook, release: :always)
    Zlib.crc32: [Z.crc32, Z.crc32(data), Z.crc32(+"x" * 20, 5), Z.crc32(odd(data, hook), release: :always), Z.crc32(file.call(data))]
    Zlib.adler32: [Z.adler32, Z.adler32(data), Z.adler32(+"x" * 20, 5), Z.adler32(odd(data, hook)), Z.adler32(file.call(data))]
    Zlib.crc32_combine: Z.crc32_combine(Z.crc32(data), 5, data.bytesize)
    Zlib.adler32_combine: Z.adler32_combine(Z.adler32(data), 5, data.bytesize)
    Zlib.crc_table: Z.crc_table
    Deflate.deflate: Z.inflate(Z::Deflate.deflate(data, 9))
    Deflate#initialize: Z.inflate(Z::Deflate.new(1, 15, 9, 0).deflate(data, Z::FINISH))
    Deflate#deflate: fed(Z::Deflate.new, data, hook) { |stream, piece| stream.deflate(piece) { |chunk| hook.call(stream, chunk) } }.total_in
    Deflate#<<: Z.inflate(fed(Z::Deflate.new, data, hook) { |stream, piece| stream << odd(piece, hook, stream) }.finish)
    Deflate#flush: Z::Deflate.new.then { |it| it << data; [it.flush, it.flush(2) { |chunk| hook.call(it, chunk) }].compact.size }
    Deflate#params: Z::Deflate.new.then { |stream| Z.inflate((stream << data).tap { _1.params(9, 0) }.finish) }
    Deflate#set_dictionary: Z::Deflate.new.then { |stream| [stream.set_dictionary(+"dictionary"), stream.deflate(data).class] }
    Inflate.inflate: Z::Inflate.inflate(Z.deflate(data))
    Inflate#initialize: Z::Inflate.new(47, max_output: 10**6).inflate(Z.gzip(data))
    Inflate#inflate: [Z::Inflate.new.inflate(Z.deflate(data), buffer: +"x"), fed_back(data, hook) { |it, piece| it.inflate(piece) { |chunk| hook.call(it, chunk) } }]
    Inflate#<<: fed_back(data, hook) { |stream, piece| stream << odd(piece, hook, stream) }
    Inflate#add_dictionary: Z::Inflate.new.add_dictionary(+"dictionary").inflate(with_dictionary(data))
    Inflate#set_dictionary: Z::Inflate.new(-15).then { |stream| [stream.set_dictionary(+"dictionary"), stream.total_in] }
    Inflate#sync: Z::Inflate.new.then { |stream| [stream.sync(odd(flushed(data), hook, stream)), stream.sync(+"")] }
    Inflate#sync_point?: Z::Inflate.new.tap { |stream| stream.inflate(flushed(data)) }.sync_point?
    GzipFile.wrap: [Z::GzipReader.wrap(file.call(Z.gzip(data))) { |reader| hook.call(reader); reader.read.b }]
    GzipFile#sync: writer(file).sync
    GzipFile#sync=: writer(file).then { |it| it.sync = true; it.write(data) }
    GzipFile#level: reader(file, data).level
    GzipFile#crc: reader(file, data).tap { _1.read(10) }.crc
    GzipFile#os_code: reader(file, data).os_code
    GzipFile#mtime: reader(file, data).mtime.class
    GzipFile#orig_name: reader(file, data).orig_name
    GzipFile#comment: reader(file, data).comment
    GzipFile#to_io: writer(file).to_io.class
    GzipFile#closed?: writer(file).then { |it| [it.closed?, it.tap(&:close).closed?] }
    GzipFile#close: [writer(file).tap { _1.write(data) }.close.class, reader(file, data).tap { _1.read }.close.class]
    GzipFile#finish: [writer(file).tap { _1.write(data) }.finish.class, reader(file, data).tap { _1.gets }.finish.class]
    GzipWriter.open: at_path { |path| Z::GzipWriter.open(path) { |it| it.write(data) } && Z::GzipReader.open(path, &:read) }
    GzipWriter#initialize: Z::GzipWriter.new(file.call(+""), 1, 0, threads: 2, progress: hook).tap { _1.write(data) }.finish.class
    GzipWriter#mtime=: writer(file).then { |it| [it.mtime = 5, it.mtime.to_i] }
    GzipWriter#orig_name=: writer(file).then { |it| [it.orig_name = odd(+"name", hook, it), it.orig_name].last }
    GzipWriter#comment=: writer(file).then { |it| [it.comment = odd(+"name", hook, it), it.comment].last }
    GzipWriter#crc: writer(file).tap { _1.write(data) }.crc
    GzipWriter#pos: writer(file).tap { _1.write(data) }.pos
    GzipWriter#tell: writer(file).tap { _1.write(data) }.tell
    GzipWriter#write: written(file) { |it| it.write(data, odd(data, hook, it), CallingText.new("text", hook, it)) }
    GzipWriter#<<: written(file) { |it| it << data << CallingText.new("text", hook, it) << data }
    GzipWriter#print: written(file) { |it| it.print(data, 1, CallingText.new("text", hook, it)) }
    GzipWriter#puts: written(file) { |it| it.puts(data, [1, [CallingText.new("text", hook, it)]]) }
    GzipWriter#printf: written(file) { |it| it.printf("%s %d", data, 1) }
    GzipWriter#putc: written(file) { |it| it.putc("x"); it.putc(65) }
    GzipWriter#flush: written(file) { |it| it.write(data); it.flush; it.flush(Z::FULL_FLUSH); it.write(data) }
    GzipReader.open: at_path { |path| File.binwrite(path, Z.gzip(data)); Z::GzipReader.open(path) { |it| [it.path == path, it.read] } }
    GzipReader.zcat: [Z::GzipReader.zcat(file.call(Z.gzip(data) * 2)), lines_of { |line| Z::GzipReader.zcat(file.call(Z.gzip(data)), &line) }]
    GzipReader#initialize: Z::GzipReader.new(file.call(Z.gzip(data)), threads: 2, progress: hook, external_encoding: "UTF-8").read
    GzipReader#external_encoding: reader(file, data).external_encoding
    GzipReader#lineno: reader(file, data).tap { _1.gets }.lineno
    GzipReader#lineno=: reader(file, data).then { |it| [it.lineno = 5, it.gets, it.lineno] }
    GzipReader#crc: reader(file, data).tap { _1.read(100) }.crc
    GzipReader#pos: reader(file, data).tap { _1.gets }.pos
    GzipReader#tell: reader(file, data).tap { _1.read(10) }.tell
    GzipReader#eof?: reader(file, data).then { |it| [it.eof?, it.read.size, it.eof?] }
    GzipReader#eof: reader(file, data).then { |it| [it.eof, it.read.size, it.eof] }
    GzipReader#unused: reader(file, data).tap { _1.read }.unused
    GzipReader#rewind: reader(file, data).then { |it| [it.gets, it.rewind, it.gets] }
    GzipReader#read: reader(file, data).then { |it| [it.read(10), it.read(1000, +"x"), it.read] }
    GzipReader#readpartial: reader(file, data).then { |it| [it.readpartial(10), it.readpartial(10, +"x")] }
    GzipReader#getbyte: reader(file, data).then { |it| Array.new(50) { it.getbyte } }
    GzipReader#readbyte: reader(file, data).then { |it| Array.new(5) { it.readbyte } }
    GzipReader#each_byte: reader(file, data).then { |it| it.each_byte.with_index.map { |byte, at| hook.call(it) if at == 5; byte } }
    GzipReader#getc: reader(file, data).then { |it| Array.new(50) { it.getc } }
    GzipReader#readchar: reader(file, data).then { |it| Array.new(5) { it.readchar } }
    GzipReader#each_char: reader(file, data).then { |it| it.each_char.with_index.map { |char, at| hook.call(it) if at == 5; char } }
    GzipReader#ungetbyte: reader(file, data).then { |it| [it.ungetbyte(65), it.gets] }
    GzipReader#ungetc: reader(file, data).then { |it| [it.gets, it.ungetc(+"é"), it.ungetc(66), it.gets] }
    GzipReader#gets: reader(file, data).then { |it| [it.gets, it.gets("e"), it.gets(5), it.gets(chomp: true), it.gets(nil, 20), it.gets("")] }
    GzipReader#readline: reader(file, data).then { |it| [it.readline, it.readline("e"), it.readline(chomp: true)] }
    GzipReader#each_line: reader(file, data).then { |it| lines_of { |line| it.each_line(chomp: true) { |made| hook.call(it); line.call(made) } } }
    GzipReader#each: reader(file, data).then { |it| lines_of { |line| it.each("e") { |made| hook.call(it); line.call(made) } } }
    GzipReader#readlines: [reader(file, data).readlines, reader(file, data).readlines(5), reader(file, data).readlines("e", chomp: true)]
  RUBY

  STREAMS = { "Deflate" => "filled_deflate", "Inflate" => "filled_inflate" }.freeze
  BY_KIND = STREAM.lines(chomp: true).to_h { |line| line.split(": ", 2) }
  ALL = CALLS.merge(STREAMS.flat_map do |kind, filled|
    BY_KIND.map do |name, call|
      finish = kind == "Inflate" ? call.gsub("Z.inflate(", "String(").gsub("chunks(hook)", "chunks(hook)") : call
      ["#{name} of #{kind}", finish.gsub("stream(data)", "#{filled}(data)")]
    end
  end.to_h).freeze

  # An object whose conversion to a String calls back.
  class CallingText
    def initialize(text, hook, object)
      @text, @hook, @object = text, hook, object
    end

    def to_s
      @hook.call(@object)
      @text
    end
  end

  # An object that can stand for a String, and whose conversion calls back.
  class Odd
    def initialize(string, hook, object)
      @string, @hook, @object = string, hook, object
    end

    def to_str
      @hook.call(@object)
      @string
    end
    alias to_s to_str
  end

  # A file whose methods call back.
  class CallingFile < StringIO
    def initialize(string, hook)
      @hook = hook
      super(string)
    end

    # Not `define_method`, because a Ractor must not call its blocks.
    %w[read readpartial write flush seek close].each do |name|
      class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        # def read(*arguments) = @hook.call(self).then { super(*arguments) }
        def #{name}(*arguments) = @hook.call(self).then { super(*arguments) }
      RUBY
    end
  end

  class << self
    ALL.each_with_index do |(_, call), index|
      class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        # def call_0(data, file, hook) = (Z.zlib_version)
        def call_#{index}(data, file, hook) = (#{call})
      RUBY
    end

    # Returns the methods that the signatures have.
    def signed
      place = nil
      File.foreach(SIGNATURES).filter_map do |line|
        place = line[/^ {4}class (\w+)/, 1] || (line.match?(/^ {2}module Zlib|^ {4}end/) ? "Zlib" : place)
        case line
        when /^ +def self\.([^:]+):/ then "#{place}.#{Regexp.last_match(1)}"
        when /^ +def ([^:]+):/ then "#{place}##{Regexp.last_match(1)}"
        when /^ +attr_accessor (\w+):/ then ["#{place}##{Regexp.last_match(1)}", "#{place}##{Regexp.last_match(1)}="]
        end
      end.flatten.uniq
    end

    def covered = ALL.keys.map { |name| name.split(" of ").first }.uniq

    def data(lines = 60) = Array.new(lines) { |number| "línea #{number} #{number * 7919 % 1009}\n" }.join

    def run(index, hook: ->(*) {}, data: self.data, file: nil)
      file ||= ->(string) { CallingFile.new(string, hook) }
      send(:"call_#{index}", data, file, hook)
    end

    private

    def odd(string, hook, object = nil) = Odd.new(string, hook, object)

    def chunks(hook)
      made = String.new
      yield ->(chunk) { (hook.call(chunk) && nil) || made << chunk }
      made
    end

    def lines_of
      made = []
      yield ->(line) { made << line }
      made
    end

    def fed(stream, data, _hook)
      data.each_line { |piece| yield stream, piece }
      stream
    end

    def fed_back(data, _hook)
      packed, stream, made = Z.deflate(data), Z::Inflate.new, String.new
      packed.unpack("a40" * (packed.bytesize / 40 + 1)).each do |piece|
        plain = yield stream, piece
        made << plain if plain.is_a?(String)
      end
      [made, stream.finish]
    end

    def filled_deflate(data) = data.each_line.inject(Z::Deflate.new) { |stream, line| stream << line }
    def filled_inflate(data) = Z::Inflate.new << Z.deflate(data)
    def flushed(data) = Z::Deflate.new.then { |it| it.deflate(data, Z::FULL_FLUSH) + it.deflate(data, Z::FULL_FLUSH) }

    def with_dictionary(data)
      Z::Deflate.new.tap { _1.set_dictionary("dictionary") }.deflate(data, Z::FINISH)
    end

    def writer(file) = Z::GzipWriter.new(file.call(String.new))
    def reader(file, data) = Z::GzipReader.new(file.call(Z.gzip(data)))

    def written(file)
      io = file.call(String.new)
      writer = Z::GzipWriter.new(io)
      yield writer
      writer.finish
      Z.gunzip(io.string)
    end

    def at_path
      path = +""
      path << File.join(Dir.tmpdir, "offlock-#{Process.pid}-#{Thread.current.object_id}.gz")
      yield path
    ensure
      FileUtils.rm_f(path)
    end
  end
end
