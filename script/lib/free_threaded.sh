# A CPython without a lock (series 3.14t), built in the tools folder from the release's source in Debian's archive. Once it is
# there, it is one of the Pythons that are tested.

FREE_THREADED_VERSION=3.14.7
FREE_THREADED_SHA256=3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81
FREE_THREADED=$TOOLS/python-$FREE_THREADED_VERSION-free-threaded

need_free_threaded_python() {
  [ ! -e "$FREE_THREADED/built" ] || return 0
  local build=$TOOLS/build/python-free-threaded
  on_debian || die "a free-threaded Python is built on Debian only: elsewhere install one, and set PYTHON=/path/to/python3.14t"
  need_packages "Building Python needs a few packages" build-essential zlib1g-dev libffi-dev libssl-dev libbz2-dev liblzma-dev
  logged "$TOOLS/log/free-threaded-source" "Fetching the source of Python $FREE_THREADED_VERSION" \
    fetch_python_source "$build"
  logged "$TOOLS/log/free-threaded-build" "Building Python $FREE_THREADED_VERSION without a lock (about 5 minutes on 2 cores)" \
    build_free_threaded_python "$build/source"
  rm -rf "$build"
}

fetch_python_source() {
  local archive=$1/source.tar.xz series=${FREE_THREADED_VERSION%.*}
  mkdir -p "$1/source"
  curl --fail --location --silent --show-error --output "$archive" \
    "$(debian_mirror)pool/main/p/python$series/python${series}_$FREE_THREADED_VERSION.orig.tar.xz"
  echo "$FREE_THREADED_SHA256  $archive" | sha256sum --check
  tar --extract --file "$archive" --directory "$1/source" --strip-components 1
}

build_free_threaded_python() (
  cd "$1"
  ./configure --disable-gil --prefix="$FREE_THREADED"
  make -j "$CORES"
  make install
  touch "$FREE_THREADED/built"
)
