#!/usr/bin/env bash
# Makes the virtual environment with yurt and its tools in it. usage: venv.sh PYTHON FOLDER
set -euo pipefail
python=$1 folder=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "yurt needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1). Try: make PYTHON=python3.11 $*" >&2
  exit 1
}
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  # Debian's python3 comes without ensurepip.
  package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
  as_root=()
  if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
  echo "setup: installing the Debian package $package"
  { "${as_root[@]}" apt-get -qq update && "${as_root[@]}" apt-get -qq -y --no-install-recommends install "$package"; } ||
    { echo "could not install $package; ask the administrator for it" >&2; exit 1; }
fi
echo "setup: virtual environment in $folder"
"$python" -m venv "$folder"
echo "setup: yurt and its tools"
"$folder/bin/python" -m pip install -q --disable-pip-version-check -e '.[dev]'
