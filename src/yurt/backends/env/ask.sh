# Prints what a site has for building environments. Needs environment.sh before it.
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
section tools
for tool in uv conda mamba gcc; do
  found=$(command -v "$tool" 2> /dev/null) && printf '%s %s\n' "$tool" "$found"
done
for found in "$tools/uv"; do [ ! -x "$found" ] || printf 'uv %s\n' "$found"; done
for found in "$HOME"/mini*3/bin/conda "$HOME"/anaconda3/bin/conda; do [ ! -x "$found" ] || printf 'conda %s\n' "$found"; done
section cuda
command -v nvidia-smi > /dev/null 2>&1 && timeout 10 nvidia-smi 2> /dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p'
section index
target=$(mktemp -d) || exit 0
if command -v uv > /dev/null 2>&1; then
  reply=$(echo packaging | timeout 20 uv pip compile --no-deps --no-header --cache-dir "$target" - 2>&1)
elif python3 -m pip --version > /dev/null 2>&1; then
  reply=$(timeout 20 python3 -m pip download --retries 0 --timeout 8 --no-deps --no-cache-dir -d "$target" packaging 2>&1)
else
  reply='no connection'
fi
code=$?
rm -rf "$target"
# An index that does not have this package is reachable too.
case $code,$reply in
  0,*) echo reachable ;;
  124,* | *onnect* | *esol* | *unreachable* | *imed\ out* | *etrying* | *rror\ sending* | *rror\ trying*) ;;
  *) echo reachable ;;
esac
