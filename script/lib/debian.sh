# Debian's archive: missing packages of the machine's own release are installed; sources or Ruby libraries of another suite
# are downloaded into the tools folder with a separate apt configuration. Packages of another suite are never installed.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

on_debian() { has apt-get && [ -f "$KEYRING" ]; }

# need_packages WHY PACKAGE...: installs the missing packages, or prints which to install.
need_packages() {
  local why=$1 missing
  shift
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] || die "$why. Please run: sudo apt-get install $missing"
  # shellcheck disable=SC2086 # a list of names
  logged "$TOOLS/log/apt-install" "Installing what is missing from this machine's own Debian release: $missing" \
    install_missing $missing
}

missing_packages() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  echo "${missing[*]}"
}

install_missing() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-upgrade --no-remove --no-install-recommends "$@"
}

# Prints the archive that this machine uses.
debian_mirror() {
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    awk '!/security/ && /\/debian\/?$/ { print; exit }')
  [ -n "$uri" ] || die "no Debian archive in this machine's apt configuration (a line that ends in /debian)"
  echo "$uri"
}

# suite_apt SUITE COMMAND...: runs an apt tool that sees SUITE only, with its lists in the tools folder.
suite_apt() {
  local home=$TOOLS/apt/$1 command=$2
  shift 2
  "$command" -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$home/sources" \
    -o Dir::State::Lists="$home/lists" -o Dir::Cache="$home/cache" \
    -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

# Refreshes the lists of SUITE when they are older than a day.
suite_update() {
  local suite=$1 home=$TOOLS/apt/$1
  [ -z "$(find "$home/updated" -mtime -1 2>/dev/null)" ] || return 0
  mkdir -p "$home/sources" "$home/lists/partial" "$home/cache/archives/partial"
  cat >"$home/sources/debian.sources" <<-END
	Types: deb deb-src
	URIs: $(debian_mirror)
	Suites: $suite
	Components: main
	Signed-By: $KEYRING
	END
  logged "$TOOLS/log/apt-$suite" "Reading Debian's package lists of $suite" suite_apt "$suite" apt-get update
  touch "$home/updated"
}

# Prints the versions of source package NAME that SUITE lists, newest first.
source_versions() {
  suite_apt "$1" apt-cache showsrc --only-source "$2" 2>/dev/null | sed -n 's/^Version: //p' | sort -rVu
}

# fetch_source SUITE NAME FOLDER: unpacks the newest version of a source package that the archive still has
# into FOLDER/source. If a listed version is gone from the archive, an older one is taken. Debian's patches are
# not applied: the original release builds without autoconf and without another Ruby.
fetch_source() {
  local suite=$1 name=$2 folder=$3 version
  suite_update "$suite"
  for version in $(source_versions "$suite" "$name"); do
    rm -rf "$folder" && mkdir -p "$folder"
    if (cd "$folder" && suite_apt "$suite" apt-get source --download-only "$name=$version"); then
      (cd "$folder" && dpkg-source --skip-patches -x ./*.dsc source)
      return
    fi
    warn "$name $version is listed in $suite but cannot be downloaded; trying an older one"
  done
  return 1
}
