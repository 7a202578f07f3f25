# Prints what a site has for building environments. Needs environment.sh and env_index.sh before it.
# arguments: MARK TOOLS MODULES-INIT [MODULE]...   TOOLS: where yurt keeps programs on the site
mark=$1 tools=$2 modules=$3
shift 3
export LC_ALL=C
section() { printf '\n%s %s\n' "$mark" "$1"; }
section modules
if [ $# -gt 0 ]; then
  (load_modules "$modules" && for each; do load_module "$each"; done) 2>&1 || exit 0
  load_modules "$modules"
  for each; do load_module "$each"; done
fi > /dev/null
section platform
uname -m
getconf GNU_LIBC_VERSION 2> /dev/null || echo musl
# shellcheck disable=SC3045 # this is bash
ulimit -t
section pythons
old_ifs=$IFS
IFS=:
for folder in $PATH; do
  for program in "$folder"/python3 "$folder"/python3.[0-9] "$folder"/python3.[0-9][0-9]; do
    [ ! -x "$program" ] || printf '%s\n' "$program"
  done
done | while IFS= read -r program; do
  timeout 10 "$program" -I -c 'import os, sys, importlib.util as u
print(*sys.version_info[:3], sep=".", end=" ")
print("venv" if u.find_spec("ensurepip") and u.find_spec("venv") else "bare", end=" ")
print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))' 2> /dev/null
done
IFS=$old_ifs
section available
([ $# -gt 0 ] || load_modules "$modules"; module -t avail) 2>&1 < /dev/null | grep -i python | head -n 200
section tools
for tool in uv conda mamba gcc; do
  found=$(command -v "$tool" 2> /dev/null) && printf '%s %s\n' "$tool" "$found"
done
[ ! -x "$tools/uv" ] || printf 'uv %s\n' "$tools/uv"
if read -r found 2> /dev/null < "$tools/conda" && [ -x "$tools/$found/bin/conda" ]; then printf 'conda %s\n' "$tools/$found/bin/conda"; fi
for found in "$HOME"/mini*3/bin/conda "$HOME"/anaconda3/bin/conda; do [ ! -x "$found" ] || printf 'conda %s\n' "$found"; done
section cuda
command -v nvidia-smi > /dev/null 2>&1 && timeout 10 nvidia-smi 2> /dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p'
section index
if [ -n "$(command -v uv)" ]; then
  cache=$(mktemp -d) || exit 0
  use_pip_settings python3
  # shellcheck disable=SC2086 # an option or nothing
  reply=$(echo packaging | timeout 20 uv pip compile $no_index --no-deps --no-header --cache-dir "$cache" - 2>&1)
  case $?,$reply in 0,*) echo reachable ;; 124,* | *'error sending request'* | *'dns error'* | *'o connect'*) ;; *) echo reachable ;; esac
  rm -rf "$cache"
else # an index that answers anything is reachable; pip itself does not say why it found nothing
  timeout 20 python3 -c 'import os, subprocess, sys, urllib.error, urllib.request
from pip._internal.models.index import PyPI
asked = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdout=-1, stderr=-3).stdout.decode()
known = dict(line.split("=", 1) for line in asked.splitlines() if ".index-url=" in line)
quoted = known.get("install.index-url") or known.get("global.index-url") or ""
url = os.environ.get("PIP_INDEX_URL") or quoted.strip(chr(39)) or PyPI.simple_url
try:
    urllib.request.urlopen(url.rstrip("/") + "/packaging/", timeout=8)
except urllib.error.HTTPError:
    pass
print("reachable")' 2> /dev/null
fi
