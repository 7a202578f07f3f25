# Lists the wheels of a wheelhouse, with their metadata. Needs environment.sh before it.
# arguments: MARK PYTHON VERSION NAMES FOLDERS MODULES-INIT [MODULE]...
# NAMES are the packages to look for, with those that they require; FOLDERS may contain variables and `*`. A line each.
mark=$1 python=$2 version=$3 names=$4 folders=$5 modules=$6
shift 6
if [ $# -gt 0 ]; then
  load_modules "$modules"
  for each; do load_module "$each"; done
fi > /dev/null
case $python in managed:*) python=$(command -v python3 || command -v python) || python=python3 ;; esac # not downloaded yet
exec "$python" -I -c '
import glob, json, os, re, sys, zipfile

mark, version, names, folders = sys.argv[1:]
KEPT = ("Metadata-Version", "Name", "Version", "Requires-Dist", "Requires-Python", "Provides-Extra")

def normal(name):
    return re.sub("[-_.]+", "-", name).lower()

def installable(tags):
    return version in tags[-3].split(".") or "py3" in tags[-3] or "abi3" in tags[-2]

def read(path):
    try:
        with zipfile.ZipFile(path) as archive:
            (inner,) = [each for each in archive.namelist() if re.match("[^/]+[.]dist-info/METADATA$", each)]
            head = re.split("\r?\n\r?\n", archive.read(inner).decode("utf-8", "replace"), maxsplit=1)[0]
    except (OSError, ValueError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
        return ""
    return "".join(line + "\n" for line in head.splitlines() if line.split(":")[0] in KEPT)

files, missing = {}, []
for pattern in folders.splitlines():
    expanded = os.path.expandvars(os.path.expanduser(pattern))
    found = [each for each in sorted(glob.glob(expanded)) if os.path.isabs(each) and os.path.isdir(each)]
    if not found:
        missing.append(pattern)
    for folder in found:
        for file in sorted(os.listdir(folder)):
            parts = file[:-4].split("-")
            if file.endswith(".whl") and len(parts) in (5, 6) and installable(parts):
                files.setdefault(normal(parts[0]), {}).setdefault(file, os.path.join(folder, file))
wheels, asked, wanted = [], set(), names.split()
while wanted:
    name = wanted.pop()
    if name in asked:
        continue
    asked.add(name)
    for path in files.get(name, {}).values():
        text = read(path)
        if text:
            wheels.append([path, text])
            wanted += map(normal, re.findall("^Requires-Dist: *([A-Za-z0-9._-]+)(?!.*extra *==)", text, re.M))
print("\n" + mark, json.dumps({"missing": missing, "asked": sorted(asked), "wheels": wheels}))
' "$mark" "$version" "$names" "$folders"
