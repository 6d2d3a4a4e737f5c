# The Rubies that the project uses: RUBY= alone if it is set, otherwise those on PATH and those built here.

RUBY_OLDEST=3.3

# rubies [PREFIX]: prints all usable Rubies (whose version starts with PREFIX), one path per line, the preferred first.
# RUBY= may be a path, a command's name or the beginning of a version such as 3.4.
rubies() {
  local candidate wanted=${1:-$(chosen_version)}
  for candidate in $(ruby_candidates); do
    if usable_ruby "$candidate" "$wanted"; then echo "$candidate"; fi
  done | awk '!seen[$0]++'
}

ruby_is_command() { [ -n "${RUBY:-}" ] && has "$RUBY"; }

chosen_version() { if ! ruby_is_command; then echo "${RUBY:-}"; fi; }

ruby_candidates() {
  if ruby_is_command; then
    command -v "$RUBY"
  else
    { type -ap ruby || true; } | while read -r candidate; do
      # It would look for a Ruby, too, and so on without end.
      [ "$candidate" -ef "$ROOT/script/ruby" ] || echo "$candidate"
    done
    ls -d "$TOOLS"/ruby-*/bin/ruby 2>/dev/null | sort -rV || true
  fi
}

# False for a version manager's shim without a version behind it, and for Debian 12's own 3.1.
usable_ruby() {
  "$1" -e "exit RUBY_VERSION.start_with?('$2') && Gem::Version.new(RUBY_VERSION) >= Gem::Version.new('$RUBY_OLDEST')" \
    >/dev/null 2>&1
}

find_ruby() { rubies "$@" | { read -r ruby && echo "$ruby"; } || true; }

ruby_version() { "$1" -e 'print RUBY_VERSION'; }

# need_packages_for_ruby [SERIES]: installs what building a Ruby needs, if one must be built.
need_packages_for_ruby() {
  if [ -n "$(find_ruby "${1:-$(chosen_version)}")" ] || ruby_is_command || ! on_debian; then return 0; fi
  need_packages "Building Ruby needs a few packages" \
    build-essential dpkg-dev bison libssl-dev libyaml-dev zlib1g-dev libffi-dev libgmp-dev
}

# need_ruby [SERIES]: finds a Ruby (of SERIES, such as 3.4) or builds one.
need_ruby() {
  local wanted=${1:-$(chosen_version)}
  [ -z "$(find_ruby "$wanted")" ] || return 0
  if ruby_is_command; then die "RUBY=$RUBY is not a Ruby ${wanted:->= $RUBY_OLDEST}"; fi
  need_packages_for_ruby "$wanted"
  build_ruby "${wanted:-$RUBY_OLDEST}"
}

# The Debian suite whose source package a Ruby is built from.
ruby_suite() {
  case $1 in
    3.3) echo trixie ;;
    3.4) echo experimental ;;
    *) die "no Ruby $1 is installed and only 3.3 and 3.4 can be built here: install it and set RUBY=/path/to/ruby" ;;
  esac
}

build_ruby() {
  local series=$1 suite build=$TOOLS/build/ruby-$1 version prefix
  on_debian || die "no Ruby >= $RUBY_OLDEST found. Install one (with your package manager, rbenv, ...) so that it is on PATH, or set RUBY=/path/to/ruby"
  suite=$(ruby_suite "$series")
  logged "$TOOLS/log/ruby-$series-source" "Fetching the source of Ruby $series from Debian's $suite" \
    fetch_source "$suite" "ruby$series" "$build"
  version=$(source_ruby_version "$build/source")
  prefix=$TOOLS/ruby-$version
  logged "$TOOLS/log/ruby-$version-configure" "Configuring Ruby $version (under a minute)" \
    configure_ruby "$build/source" "$prefix"
  logged "$TOOLS/log/ruby-$version-make" "Building Ruby $version (about 3 minutes on 2 cores)" \
    make -C "$build/source" -j "$CORES"
  logged "$TOOLS/log/ruby-$version-install" "Installing Ruby $version into $prefix" \
    install_ruby "$build/source" "$prefix"
  keep_originals "$build/source" "$version"
  rm -rf "$build"
}

# need_originals RUBY: downloads Ruby's own tests of the libraries that offlock replaces, if Debian has this version of Ruby.
need_originals() {
  local version series build
  version=$(ruby_version "$1")
  series=${version%.*}
  build=$TOOLS/build/originals-$series
  [ ! -e "$TOOLS/originals/ruby-$version" ] && on_debian || return 0
  case $series in 3.3 | 3.4) ;; *) return 0 ;; esac
  logged "$TOOLS/log/originals-$series" "Fetching Ruby $version's own tests from Debian's source package" \
    fetch_source "$(ruby_suite "$series")" "ruby$series" "$build"
  if [ "$(source_ruby_version "$build/source")" = "$version" ]; then
    keep_originals "$build/source" "$version"
  fi
  rm -rf "$build"
}

# keep_originals SOURCE VERSION
keep_originals() {
  local folder=$TOOLS/originals/ruby-$2
  rm -rf "$folder" && mkdir -p "$folder/test" "$folder/tool"
  cp -R "$1/test/zlib" "$folder/test" && cp -R "$1/tool/lib" "$folder/tool"
}

source_ruby_version() {
  awk '/define RUBY_API_VERSION_(MAJOR|MINOR)/ { v = v $3 "." } END { print v }' "$1/include/ruby/version.h" |
    tr -d '\n'
  awk '/define RUBY_VERSION_TEENY/ { print $3 }' "$1/version.h"
}

configure_ruby() {
  (cd "$1" && ./configure --prefix="$2" --enable-shared --enable-yjit --disable-install-doc)
}

# `make install` into a temporary folder, which is then renamed, so that an existing Ruby is always complete.
install_ruby() {
  rm -rf "$2.new"
  make -C "$1" install DESTDIR="$2.new"
  mv -T "$2.new$2" "$2"
  rm -rf "$2.new"
}
