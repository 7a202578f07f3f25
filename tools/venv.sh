#!/usr/bin/env bash
# Creates a virtual environment with yurt and its development tools. usage: venv.sh PYTHON FOLDER
set -euo pipefail
python=$1 folder=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "setup: yurt needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1)" >&2
  echo "hint: name another Python, such as: make setup PYTHON=python3.11" >&2
  exit 1
}
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  # Debian's python3 has no ensurepip.
  package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
  as_root=()
  if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
  echo "setup: installing the Debian package $package"
  { "${as_root[@]}" apt-get -qq update && "${as_root[@]}" apt-get -qq -y --no-install-recommends install "$package"; } ||
    { echo "setup: could not install $package; ask the administrator to install it" >&2; exit 1; }
fi
echo "setup: creating the virtual environment $folder"
"$python" -m venv "$folder"
echo "setup: installing yurt and its development tools"
pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check)
# uv is several times as fast, but does not read all settings of pip.
if ! { "${pip[@]}" uv && "$folder/bin/uv" pip install -q --python "$folder/bin/python" -e '.[dev]'; }; then
  "${pip[@]}" -e '.[dev]'
fi
