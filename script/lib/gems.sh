# Ruby libraries for checks and comparisons from Debian's packages, unpacked into the tools folder and put on
# the load path. Nothing is installed, and libraries that Ruby includes are left out.

# need_gems SUITE PACKAGE...: downloads packages for gems_load_path.
need_gems() {
  local suite=$1 folder=$TOOLS/gems
  shift
  ! fresh "$folder/ready" "$suite $*" || return 0
  suite_update "$suite"
  logged "$TOOLS/log/gems" "Fetching Ruby libraries from Debian's $suite: $*" unpack_gems "$suite" "$folder" "$@"
  echo "$suite $*" >"$folder/ready"
}

unpack_gems() {
  local suite=$1 folder=$2 file
  shift 2
  rm -rf "$folder" && mkdir -p "$folder/deb"
  # shellcheck disable=SC2046 # a list of names
  (cd "$folder/deb" && suite_apt "$suite" apt-get download $(library_closure "$suite" "$@"))
  for file in "$folder"/deb/*.deb; do dpkg -x "$file" "$folder"; done
  rm -r "$folder/deb"
  # This library looks for its table in Debian's folder or, as here, beside its code.
  if [ -d "$folder/usr/share/ruby-unicode-display-width" ]; then
    ln -s ../../share/ruby-unicode-display-width "$folder/usr/lib/ruby/data"
  fi
}

# Prints the named packages and every Ruby library that they depend on.
library_closure() {
  local suite=$1 found=' ' name
  shift
  while [ $# -gt 0 ]; do
    name=$1
    shift
    case $found in *" $name "*) continue ;; esac
    if brought_by_ruby "${name#ruby-}"; then continue; fi
    found+="$name "
    # shellcheck disable=SC2046 # a list of names
    set -- "$@" $(suite_apt "$suite" apt-cache depends --important "$name" | sed -n 's/^ *Depends: \(ruby-.*\)/\1/p')
  done
  echo "$found"
}

brought_by_ruby() { "$(find_ruby)" -e "exit !Gem::Specification.find_all_by_name('$1').empty?"; }

# gems_load_path [FOLDER]: prints the value of RUBYLIB for the libraries.
gems_load_path() {
  local folder=${1:-$TOOLS/gems}
  printf '%s:' "$folder"/usr/lib/ruby/vendor_ruby "$folder"/usr/share/rubygems-integration/all/gems/*/lib
}

gem_executable() { ls "$TOOLS"/gems/usr/share/rubygems-integration/all/gems/*/exe/"$1"; }

# need_replace_gems RUBY: prepares the libraries that the tests run with offlock's modules in place of the originals.
need_replace_gems() {
  local folder=$TOOLS/gems-replace wanted
  wanted="Ruby $(ruby_version "$1"): $REPLACE_GEMS with a mended nio4r, puma"
  ! fresh "$folder/ready" "$wanted" || return 0
  suite_update trixie
  suite_update bookworm
  logged "$TOOLS/log/gems-replace" "Fetching the libraries that are run with offlock/replace from Debian, and building Puma" \
    make_replace_gems "$1" "$folder"
  echo "$wanted" >"$folder/ready"
}

REPLACE_GEMS="ruby-activejob ruby-nio4r ruby-sinatra ruby-webrick ruby-zip"

# Puma's parser is in C: it is built for this Ruby, from the source package of Debian's release. nio4r does not need its C
# extension. Without it, a selector on Linux never empties the pipe that wakes it up, because stat says 0 bytes for a pipe:
# from the first wake-up on, Puma's reactor would keep a processor and the lock busy.
make_replace_gems() {
  local folder=$2 selector
  # shellcheck disable=SC2086 # a list of names
  unpack_gems trixie "$folder" $REPLACE_GEMS
  selector=$(ls "$folder"/usr/lib/*/rubygems-integration/*/gems/nio4r-*/lib/nio/selector.rb)
  sed -i 's/@wakeup.read(@wakeup.stat.size)/@wakeup.read_nonblock(1 << 16)/' "$selector"
  grep -qF '@wakeup.read_nonblock(1 << 16)' "$selector"
  fetch_source bookworm puma "$folder/puma"
  mkdir "$folder/puma/build"
  (cd "$folder/puma/build" && PUMA_DISABLE_SSL=1 "$1" ../source/ext/puma_http11/extconf.rb && make)
  mkdir "$folder/puma/lib"
  cp -R "$folder"/puma/source/lib/. "$folder/puma/lib"
  cp "$folder"/puma/build/puma_http11.so "$folder/puma/lib/puma/"
}

# Prints the value of RUBYLIB for them.
replace_gems_load_path() {
  local folder=$TOOLS/gems-replace
  gems_load_path "$folder"
  # concurrent-ruby has its files in a folder of its library folder.
  printf '%s:' "$folder"/usr/lib/*/rubygems-integration/*/gems/nio4r-*/lib "$folder/puma/lib" \
    "$folder"/usr/share/rubygems-integration/all/gems/concurrent-ruby-*/lib/concurrent-ruby
}

# The folder of their commands.
replace_gems_bin() { echo "$TOOLS/gems-replace/puma/source/bin"; }
