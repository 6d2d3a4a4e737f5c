# The paths, messages and locks that all scripts use.
set -euo pipefail
shopt -s inherit_errexit 2>/dev/null || true # not in macOS's old bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOLS=${OFFLOCK_CACHE:-$ROOT/.cache}
CORES=$(nproc 2>/dev/null || sysctl -n hw.ncpu)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# logged LOG WHAT COMMAND...: runs COMMAND with its output in LOG, and prints the end of LOG if COMMAND fails.
logged() {
  local log=$1 what=$2 start=$SECONDS status
  shift 2
  mkdir -p "$(dirname "$log")"
  say "$what"
  # Not `if ! COMMAND`: a function would then go on after its first failure.
  set +e
  (
    set -e
    "$@"
  ) >"$log" 2>&1
  status=$?
  set -e
  [ $status = 0 ] || { tail -n 40 "$log" >&2 && die "failed: $what (full output: $log)"; }
  say "$what: done in $((SECONDS - start)) s"
}

# Locks the tools folder, so that one set-up runs at a time. A second one waits, then finds everything installed.
lock_tools() {
  mkdir -p "$TOOLS"
  if has flock; then
    exec 8>"$TOOLS/lock"
    flock -n 8 || { say "waiting for another set-up in $TOOLS" && flock 8; }
  fi
}

# fresh STAMP CONTENT: true when STAMP holds exactly CONTENT.
fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# bounded SECONDS COMMAND...: runs COMMAND, and ends it with SIGABRT if it takes longer: then Python and Ruby print what each
# thread was doing.
bounded() {
  if has timeout; then
    timeout --signal=ABRT --kill-after=30 "$@"
  else
    "${@:2}"
  fi
}
