# Finds conda on a site, or installs it for the user. Only definitions: the script that needs them follows.
# The folder of tools contains conda-NONCE, an installation, whose path is written into its files, and the file `conda`,
# which names a complete one.

find_conda() { # find_conda TOOLS: sets conda, to an empty string if there is none
  conda=
  for each in conda mamba "$HOME"/mini*3/bin/conda "$HOME/anaconda3/bin/conda"; do
    [ -n "$conda" ] || conda=$(command -v "$each") || true
  done
  if [ -n "$conda" ] || ! read -r conda 2> /dev/null < "$1/conda"; then return; fi
  conda=$1/$conda/bin/conda
  "$conda" --version > /dev/null 2>&1 && return
  conda=
  rm -f "$1/conda" # a purge has removed files of it
}
install_conda() { # install_conda TOOLS INSTALLER NONCE: an address, or a file in TOOLS, which is removed; sets conda
  echo 'installing conda' > phase
  for each in "$1"/conda-*; do # left by interrupted builds
    [ ! -d "$each" ] || [ -e "$each/complete" ] || [ -z "$(find "$each" -maxdepth 0 -mmin +1440)" ] || rm -rf "$each"
  done
  mkdir -p "$1"
  case $2 in
    *://*)
      conda_file=$1/installer.$3
      if command -v curl > /dev/null; then curl -fsSL -o "$conda_file" "$2"; else wget -q -O "$conda_file" "$2"; fi ||
        { echo "the installer of conda cannot be downloaded on $(uname -n)" && rm -f "$conda_file" && return 1; }
      ;;
    *) conda_file=$2 ;;
  esac
  # No variables of an active Python or conda: the installer uses its own.
  env -u PYTHONPATH -u PYTHONHOME -u CONDA_PREFIX bash "$conda_file" -b -p "$1/conda-$3" < /dev/null ||
    { echo "the installer of conda failed" && rm -rf "$1/conda-$3" "$conda_file" && return 1; }
  conda=$1/conda-$3/bin/conda
  "$conda" --version > /dev/null || { echo "the installer of conda installed none" && rm -rf "$1/conda-$3" && return 1; }
  : > "$1/conda-$3/complete"
  echo "conda-$3" > "$1/conda.$3"
  ln "$1/conda.$3" "$1/conda" 2> /dev/null || [ -e "$1/conda" ] || mv -f "$1/conda.$3" "$1/conda"
  rm -f "$1/conda.$3" "$conda_file"
}
