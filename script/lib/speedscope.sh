# The JSON schema of speedscope's files, from its npm package.

SPEEDSCOPE=1.25.0
SPEEDSCOPE_FILE=$TOOLS/speedscope-$SPEEDSCOPE/file-format-schema.json

# Downloads the package, unless its schema is there, and tells the tests where that is.
need_speedscope_schema() {
  if [ ! -f "$SPEEDSCOPE_FILE" ]; then
    logged "$TOOLS/log/speedscope" "Fetching speedscope's schema" fetch_speedscope_schema
  fi
  export SPEEDSCOPE_SCHEMA=$SPEEDSCOPE_FILE
}

fetch_speedscope_schema() {
  local folder
  folder=$(mktemp -d "$TOOLS/speedscope.XXXXXX")
  npm pack --silent --pack-destination "$folder" "speedscope@$SPEEDSCOPE"
  tar -xzf "$folder/speedscope-$SPEEDSCOPE.tgz" -C "$folder" --strip-components=3 package/dist/release/file-format-schema.json
  mkdir -p "$(dirname "$SPEEDSCOPE_FILE")"
  mv "$folder/file-format-schema.json" "$SPEEDSCOPE_FILE"
  rm -r "$folder"
}
