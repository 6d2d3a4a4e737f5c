# What every build needs: Rust, a C compiler and libclang.

need_rust() {
  local oldest version
  oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
  has cargo || die "no Rust found. Install Rust $oldest or newer with rustup or your package manager"
  version=$(rustc --version | cut -d ' ' -f 2)
  [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ] ||
    die "Rust $version is too old: install Rust $oldest or newer"
}

# The C compiler, and libclang, with which bindgen reads Ruby's headers.
need_native_tools() {
  if on_debian; then
    need_packages "Building the extensions needs a C compiler and libclang" gcc libc6-dev libclang-dev
  else
    has cc || die "no C compiler found: install one, and libclang"
  fi
}
