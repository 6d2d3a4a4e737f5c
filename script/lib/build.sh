# Builds the two extensions for one interpreter each. Every interpreter has its own target folder, as the
# crates that bind to it are compiled against its headers. Benchmarks set OFFLOCK_PROFILE=release, which is what is shipped.

PROFILE=${OFFLOCK_PROFILE:-quick}

# build_ruby_extension RUBY: builds offlock/offlock.so and prints its folder, for the load path.
build_ruby_extension() {
  local target library
  target=$ROOT/target/ruby-$(ruby_version "$1")
  RUBY=$1 PATH=$(dirname "$1"):$PATH build_extension offlock "$target"
  library=$(library_file "$target" offlock)
  install_if_changed "$library" "$target/lib/offlock/offlock.$("$1" -e 'print RbConfig::CONFIG["DLEXT"]')"
  echo "$target/lib"
}

# build_python_extension SERIES: builds the module beside the package's Python files, one file for each version. As in a wheel,
# it is not linked to libpython, which an interpreter may lack or contain.
build_python_extension() {
  local python=$TOOLS/venv-$1/bin/python target=$ROOT/target/python-$1 suffix
  # macOS would need other arguments of the linker as well.
  [ "$(uname)" != Linux ] || export PYO3_BUILD_EXTENSION_MODULE=1
  PYO3_PYTHON=$python build_extension offlock-python "$target"
  suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
  install_if_changed "$(library_file "$target" _offlock)" "$ROOT/python/offlock/_offlock$suffix"
}

# The first build takes minutes, so it prints a message. Later ones print nothing and are quick if nothing changed.
build_extension() {
  if [ -z "$(library_file "$2" '*offlock')" ]; then
    say "Building the extension for ${2##*/} (about 3 minutes)"
    copy_dependencies "$2"
  fi
  cargo build --manifest-path "$ROOT/Cargo.toml" --locked --profile "$PROFILE" --quiet --package "$1" --target-dir "$2" >&2 ||
    die "the extension did not build"
}

# copy_dependencies TARGET: copies the crates that another interpreter's build has compiled. Cargo recompiles those that
# differ.
copy_dependencies() {
  local from folder
  [ ! -e "$1/$PROFILE" ] || return 0
  for from in "$ROOT"/target/{python,ruby}-*; do
    [ -n "$(library_file "$from" '*offlock')" ] || continue
    mkdir -p "$1/$PROFILE"
    for folder in .fingerprint build deps; do cp -a "$from/$PROFILE/$folder" "$1/$PROFILE/"; done
    return
  done
}

# The file's name differs between Linux and macOS.
library_file() { find "$1/$PROFILE" -maxdepth 1 \( -name "lib$2.so" -o -name "lib$2.dylib" \) 2>/dev/null; }

# Replaces the file by renaming, because a process may have the old one loaded.
install_if_changed() {
  mkdir -p "$(dirname "$2")"
  cmp -s "$1" "$2" || { cp "$1" "$2.$$" && mv "$2.$$" "$2"; }
}
