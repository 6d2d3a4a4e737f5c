# Megatron-LM's reader and writer of indexed datasets: one file of its package on PyPI.

MEGATRON=0.19.0
MEGATRON_FILE=$TOOLS/megatron-core-$MEGATRON/indexed_dataset.py

# Downloads the package, unless that file is there, and tells the tests where it is. The package is made for Python 3.12,
# the file runs on others.
need_megatron() {
  if [ ! -f "$MEGATRON_FILE" ]; then
    logged "$TOOLS/log/megatron" "Fetching Megatron-LM's reader of token files" fetch_megatron
  fi
  export MEGATRON_INDEXED_DATASET=$MEGATRON_FILE
}

fetch_megatron() {
  local folder python=$TOOLS/venv-export/bin/python
  folder=$(mktemp -d "$TOOLS/megatron.XXXXXX")
  "$python" -m pip download --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 \
    --dest "$folder" "megatron-core==$MEGATRON"
  "$python" -m zipfile -e "$folder"/*.whl "$folder/package"
  mkdir -p "$(dirname "$MEGATRON_FILE")"
  mv "$folder/package/megatron/core/datasets/indexed_dataset.py" "$MEGATRON_FILE"
  rm -r "$folder"
}
