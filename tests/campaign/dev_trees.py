"""Random trees for the campaign of dev nodes: a script that edits a workspace, and one that takes its fingerprint.

Both are texts that run on a node, with its own Python.
"""

from __future__ import annotations

EDIT = r"""
import os, random, shutil, sys

folder, generation, seed, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
dice = random.Random(seed)
os.chdir(folder)
ODD = [b"a b", b"-rf", b"new\nline", b"quote'\"", b"\xff\xfe", "日本".encode(), b"*", b"back\\slash", b"trail ."]

def files():
    return sorted(os.path.join(place, name) for place, _, names in os.walk(b".") for name in names
                  if name != b"generation")

def folders():
    return sorted(place for place, _, _ in os.walk(b"."))

def new():
    name = dice.choice(ODD) if dice.random() < 0.2 else b"f%d" % dice.randrange(10**6)
    return os.path.join(dice.choice(folders()), name)

def write(path, length):
    if os.path.lexists(path):
        return
    with open(path, "wb") as stream:
        stream.write(random.Random(dice.random()).getrandbits(8 * length).to_bytes(length, "big") if length else b"")
    os.chmod(path, dice.choice([0o644, 0o600, 0o755, 0o400]))

held = sum(os.lstat(each).st_size for each in files())
while held > 120 << 20:
    for each in files():
        if os.lstat(each).st_size > 1 << 20:
            held -= os.lstat(each).st_size
            os.unlink(each)
            break
for _ in range(dice.randint(1, 4)):
    path = new() + b".d"
    if not os.path.lexists(path):
        os.mkdir(path, 0o755)
for _ in range(dice.randint(20, 150)):
    write(new(), dice.choice([0, 1, 100, 5000, 20000]))
write(os.path.join(dice.choice(folders()), b"large%d" % generation), size)
path = new()
if not os.path.lexists(path):
    with open(path, "wb") as stream:
        stream.truncate(5 << 20)
        stream.seek(3 << 20)
        stream.write(b"island")
for _ in range(dice.randint(1, 12)):
    found, kind = files(), dice.choice(["change", "delete", "rename", "link", "symlink", "mode", "touch"])
    if not found:
        break
    one, path = dice.choice(found), new()
    if kind == "delete":
        os.unlink(one)
    elif kind == "rename" and not os.path.lexists(path):
        os.rename(one, path)
    elif kind == "link" and not os.path.lexists(path):
        os.link(one, path, follow_symlinks=False)
    elif kind == "symlink" and not os.path.lexists(path):
        os.symlink(dice.choice([one, b"nowhere", b"/etc/hostname"]), path)
    elif not os.path.islink(one):
        os.chmod(one, 0o700)
        if kind == "change":
            with open(one, "ab") as stream:
                stream.write(b"more")
        elif kind == "touch":
            os.utime(one, ns=(dice.randrange(10**18), dice.randrange(10**18)))
if dice.random() < 0.3 and len(folders()) > 6:
    shutil.rmtree(dice.choice(folders()[1:]))
with open("generation", "w") as stream:
    stream.write(str(generation))
"""

PRINT = r"""
import hashlib, os, stat, sys

folder = os.fsencode(sys.argv[1])
rows, groups = [], {}
for place, names, files in os.walk(folder):
    for name in names + files:
        path = os.path.join(place, name)
        found = os.lstat(path)
        inside = os.path.relpath(path, folder)
        row = [inside, stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode)]
        if stat.S_ISLNK(found.st_mode):
            row[2] = os.readlink(path)
        else:
            row.append(found.st_mtime_ns)
        if stat.S_ISREG(found.st_mode):
            with open(path, "rb") as stream:
                row += [found.st_size, hashlib.sha256(stream.read()).hexdigest()]
        if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            groups.setdefault(found.st_ino, []).append(inside)
        rows.append(row)
rows = sorted(rows) + sorted(sorted(each) for each in groups.values())
generation = os.path.join(folder, b"generation")
number = open(generation).read() if os.path.exists(generation) else "0"
print(number, len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
"""
