#!/usr/bin/env bash
# `make demo`: installs yurt without its development tools and runs demo.py. usage: demo.sh PYTHON VENV
set -euo pipefail
python=$1 venv=$2
own=.venv-demo

ready() { # whether a virtual environment has yurt, installed after the last change of pyproject.toml
  [ "$1/.installed" -nt pyproject.toml ] && "$1/bin/yurt" --version > /dev/null 2>&1
}
install_yurt() { # install_yurt PIP...
  echo "demo: installing yurt into $own (once; needs the network)"
  "$@" install -q --disable-pip-version-check -e . || {
    echo "demo: the installation failed (see above); it needs the network" >&2
    exit 1
  }
  echo '*' > "$own/.gitignore"
  touch "$own/.installed"
}

if ready "$venv"; then
  own=$venv
elif ! ready "$own"; then
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "demo: yurt needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1)" >&2
    echo "hint: name another Python, such as: make demo PYTHON=python3.11" >&2
    exit 1
  fi
  rm -rf "$own"
  if "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    "$python" -m venv "$own"
    install_yurt "$own/bin/python" -m pip
  elif "$python" -c 'import pip, venv' 2> /dev/null; then # Debian's python3 has no ensurepip
    "$python" -m venv --without-pip "$own"
    install_yurt "$python" -m pip --python "$own/bin/python"
  else # venv.sh installs a Debian package first, with root or sudo
    bash tools/venv.sh "$python" "$venv"
    touch "$venv/.installed"
    own=$venv
  fi
fi
exec "$own/bin/python" tools/demo.py
