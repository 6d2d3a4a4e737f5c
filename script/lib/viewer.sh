# The tools that build and test the report page, in the versions of viewer/package-lock.json.

need_viewer() {
  local stamp=$ROOT/viewer/node_modules/.offlock-ready
  ! fresh "$stamp" "$(cat "$ROOT/viewer/package-lock.json")" || return 0
  logged "$TOOLS/log/viewer" "Fetching the tools of the report page" npm --prefix "$ROOT/viewer" ci
  cp "$ROOT/viewer/package-lock.json" "$stamp"
}
