# The Pythons that the project uses: PYTHON= alone if it is set, otherwise every series from 3.11 on that is on PATH,
# under pyenv, or built here. Each has its own virtual environment in the tools folder.

REQUIREMENTS=$ROOT/python/requirements-dev.txt
PYTHON_PROBE='
import sys, sysconfig
if sys.version_info < (3, 11): sys.exit(1)
free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
if free_threaded and sys.version_info < (3, 14): sys.exit(1)  # PyO3 supports free-threaded builds from 3.14 on
print("%d.%d%s" % (*sys.version_info[:2], free_threaded), sys._base_executable)
'

# Prints all usable Pythons, one line with a series ("3.12", "3.14t") and a path for each series, the preferred first.
# PYTHON= may be a path, a command's name or a series.
pythons() {
  local candidate
  for candidate in $(python_candidates); do probe_python "$candidate" || true; done | awk '!seen[$1]++'
}

# Prints the preferred series.
default_series() {
  local candidate found
  for candidate in $(python_candidates); do
    if found=$(probe_python "$candidate"); then echo "${found%% *}" && return; fi
  done
}

# Prints the preferred series, whose virtual environment must exist.
prepared_series() {
  local series
  series=$(default_series)
  [ -x "$TOOLS/venv-$series/bin/python" ] || die "no virtual environment for Python $series found: run script/setup"
  echo "$series"
}

python_candidates() {
  if python_is_command; then
    command -v "$PYTHON"
  else
    type -ap python3 python3.11 python3.12 python3.13 python3.14 python3.15 || true
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 "$TOOLS"/python-*/bin/python3 2>/dev/null || true
  fi
}

python_is_command() { [ -n "${PYTHON:-}" ] && has "$PYTHON"; }

# Prints the series and the real path of a Python that is new enough and wanted; otherwise fails.
probe_python() {
  local found
  found=$("$1" -c "$PYTHON_PROBE" 2>/dev/null) || return 1
  if [ -n "${PYTHON:-}" ] && ! python_is_command; then [ "${found%% *}" = "$PYTHON" ] || return 1; fi
  echo "$found"
}

# need_venvs: makes a virtual environment with the development requirements for every Python.
need_venvs() {
  local series python
  [ -n "$(pythons)" ] || die "no Python >= 3.11${PYTHON:+ that is PYTHON=$PYTHON} found. Install one (Debian: apt-get install python3 python3-venv python3-dev) or set PYTHON=/path/to/python3"
  while read -r series python; do need_venv "$series" "$python"; done < <(pythons)
}

need_venv() {
  local series=$1 python=$2 venv=$TOOLS/venv-$1 wanted
  wanted="$python $("$python" -VV) $(cat "$REQUIREMENTS")"
  ! fresh "$venv/offlock-ready" "$wanted" || return 0
  need_ensurepip "$series" "$python"
  logged "$TOOLS/log/venv-$series" "Making the virtual environment for Python $series (about 30 s)" \
    make_venv "$venv" "$python" "$REQUIREMENTS"
  echo "$wanted" >"$venv/offlock-ready"
}

# Debian has the modules that venv needs in a separate package.
need_ensurepip() {
  if "$2" -c 'import ensurepip' 2>/dev/null; then return; fi
  on_debian || die "$2 cannot make virtual environments: its module ensurepip is missing"
  need_packages "Python $1 cannot make virtual environments" "python$1-venv"
}

make_venv() {
  [ "$("$1/bin/python" -c 'import sys; print(sys._base_executable)')" -ef "$2" ] || "$2" -m venv --clear "$1"
  "$1/bin/python" -m pip install --disable-pip-version-check -r "$3"
}

# need_demo_venv SERIES: makes the environment of a Python with what the demo needs, unless it has that already. Set-up adds
# the rest later.
need_demo_venv() {
  local venv=$TOOLS/venv-$1 python
  if "$venv/bin/python" -c 'import msgpack, uvicorn' 2>/dev/null; then return 0; fi
  python=$(pythons | awk -v series="$1" '$1 == series { print $2 }')
  need_ensurepip "$1" "$python"
  logged "$TOOLS/log/venv-demo" "Making a virtual environment for Python $1 with uvicorn and msgpack" \
    make_venv "$venv" "$python" "$ROOT/examples/demo/requirements.txt"
}

# Makes a virtual environment with what reads exported traces and files of tokens in tests.
need_export_venv() {
  local venv=$TOOLS/venv-export requirements=$ROOT/cli/tests/requirements.txt
  ! fresh "$venv/offlock-ready" "$(cat "$requirements")" || return 0
  logged "$TOOLS/log/venv-export" "Making the virtual environment for the tests of exports (about 30 s)" \
    make_venv "$venv" "$(pythons | awk 'NR == 1 { print $2 }')" "$requirements"
  cp "$requirements" "$venv/offlock-ready"
}

# Makes a virtual environment with Ray, for the preferred Python only.
need_ray_venv() {
  local venv=$TOOLS/venv-ray requirements=$ROOT/python/engines/requirements.txt python wanted
  python=$(pythons | awk 'NR == 1 { print $2 }')
  wanted="$python $("$python" -VV) $(cat "$requirements")"
  ! fresh "$venv/offlock-ready" "$wanted" || return 0
  logged "$TOOLS/log/venv-ray" "Making the virtual environment with Ray (about 250 MB)" \
    make_venv "$venv" "$python" "$requirements"
  echo "$wanted" >"$venv/offlock-ready"
}

# Makes a virtual environment with the programs that the tests run with offlock's modules in place of the originals, for the
# preferred Python only.
need_replace_venv() {
  local venv=$TOOLS/venv-replace requirements=$ROOT/python/programs/requirements.txt python wanted
  python=$(pythons | awk 'NR == 1 { print $2 }')
  wanted="$python $("$python" -VV) $(cat "$requirements")"
  ! fresh "$venv/offlock-ready" "$wanted" || return 0
  logged "$TOOLS/log/venv-replace" "Making the virtual environment for the programs that are run with offlock.replace (about 40 s)" \
    make_venv "$venv" "$python" "$requirements"
  echo "$wanted" >"$venv/offlock-ready"
}
