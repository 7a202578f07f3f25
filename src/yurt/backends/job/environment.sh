# The environment of your command: modules, conda, container.
fail() {
  echo "yurt: $*" >&2
  exit 78
}
load_modules() { # load_modules FOLDER: `module` is defined in login shells only, which a job is not
  type module > /dev/null 2>&1 && return
  for yurt_each in "$1/init/bash" "$1/init/sh" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
    if [ -r "$yurt_each" ]; then . "$yurt_each" && return; fi
  done
  fail "command 'module' not found on this node"
}
use_conda() { # use_conda NAME
  for yurt_each in conda "$HOME/miniconda3/bin/conda" "$HOME/miniforge3/bin/conda" "$HOME/anaconda3/bin/conda"; do
    command -v "$yurt_each" > /dev/null 2>&1 && eval "$("$yurt_each" shell.posix hook)" && conda activate "$1" && return
  done
  fail "conda activate $1 failed"
}
container_engine='for engine in apptainer singularity; do command -v "$engine" > /dev/null && exec "$engine" "$@"; done
  echo "yurt: neither apptainer nor singularity found on this node" >&2
  exit 78'
