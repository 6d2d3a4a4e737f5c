# Ruby libraries for checks and comparisons from Debian's packages, unpacked into the tools folder and put on
# the load path: nothing is installed, and what Ruby itself brings is left out.

# need_gems SUITE PACKAGE...: makes them usable through gems_load_path.
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
  # This one looks for its table in Debian's place or, as here, beside its code.
  ln -s ../../share/ruby-unicode-display-width "$folder/usr/lib/ruby/data"
}

# The named packages and every Ruby library that they depend on.
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

# The value of RUBYLIB with which the libraries are found.
gems_load_path() {
  printf '%s:' "$TOOLS"/gems/usr/lib/ruby/vendor_ruby "$TOOLS"/gems/usr/share/rubygems-integration/all/gems/*/lib
}

gem_executable() { ls "$TOOLS"/gems/usr/share/rubygems-integration/all/gems/*/exe/"$1"; }
