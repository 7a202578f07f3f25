"""`yurt dev up --from`: a workspace from every kind of source; a wrong source leaves nothing behind."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab

SHARED = "/lustre/scratch/alice"

MAKE = f"""set -e; cd {SHARED}
mkdir -p sources/in/work sources/bare.git && cd sources && echo folder > in/a && echo site > in/work/a
tar -C in -cf site.tar work && echo text > bad.tar
git init -q --bare bare.git && git clone -q bare.git clone 2>&1 && cd clone && echo git > a && git add a
git -c user.name=a -c user.email=a@example.org commit -qm a && git push -q origin HEAD"""


def archive(folder: Path) -> Path:
    (folder / "work").mkdir()
    (folder / "work" / "a").write_text("laptop\n")
    made = folder / "own.tar.gz"
    subprocess.run(["tar", "-C", str(folder), "-czf", str(made), "work"], check=True)
    return made


def test_a_wrong_source_leaves_nothing(user: User) -> None:
    user.environment["HOME"] = str(user.home)
    bad = user.project / "bad.tar.gz"
    bad.write_text("no archive")
    wrong = {"gamma": 2, "nope.tar": 2, "local:nope": 3, str(bad): 5}
    for source, code in wrong.items():
        done = user.quick("dev", "up", "w", "--context", "local", "--from", source)
        assert done.code == code, done
        errors = done.err[done.err.index("yurt: ") :].splitlines()
        assert len([line for line in errors if line.startswith("yurt: ")]) == 1 and len(errors) < 4, done
        assert user.quick("dev", "status", "--json").json["data"] == []
    assert not (user.home / "yurt-dev" / "work-w").exists() and bad.exists()
    assert not list(user.home.glob("**/workspaces/*"))


@pytest.mark.slow
def test_every_kind_of_source(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    ssh = Ssh(lab)
    ssh("alpha", MAKE)
    own = archive(tmp_path)
    (laptop.project / "a").write_text("project\n")
    kinds = {
        "git": f"file://{SHARED}/sources/bare.git",
        "folder": f"{SHARED}/sources/in",
        "tier": "scratch:sources/in",
        "site": f"{SHARED}/sources/site.tar",
        "laptop": str(own),
        "project": "project",
    }

    def up(name: str, source: str, context: str = "alpha") -> Any:
        words = ("dev", "up", name, "--context", context, "--from", source, "--time", "10m", "--cpus", "1", "--json")
        return laptop(*words)

    with ThreadPoolExecutor(3) as several:
        found = dict(zip(kinds, several.map(lambda item: up(*item), kinds.items()), strict=True))
    for name, done in found.items():
        assert done.code == 0, done
        text = laptop("dev", "ssh", name, "--", "cat a").out
        assert text == ("folder\n" if name == "tier" else f"{name}\n")
    hidden = ssh("alpha", f"cd {SHARED}/yurt/workspaces && ls -A")
    assert ".from" not in hidden, "the uploaded archive is still there"
    copied = up("moved", "alpha:laptop@v1", "beta")
    assert copied.code == 0 and laptop("dev", "ssh", "moved", "--", "cat a").out == "laptop\n", copied
    missing = f"file://{SHARED}/sources/nope.git"
    wrong = {f"{SHARED}/sources/nope": 5, missing: 5, "scratch:sources/bad.tar": 5, "alpha:laptop@v7": 3}
    for number, (source, code) in enumerate(wrong.items()):
        done = up(f"wrong{number}", source, "beta" if code == 3 else "alpha")
        assert done.code == code, done
    names = {*kinds, "moved"}  # it finds those of other tests, too
    seen = {each["name"] for each in laptop.quick("dev", "status", "--json").json["data"]}
    assert names <= seen and not [name for name in seen if name.startswith("wrong")], seen
    assert "wrong" not in ssh("alpha", f"cd {SHARED}/yurt/workspaces && ls -A")
    for name in names:
        assert laptop.quick("dev", "down", name, "--now", "--yes").code == 0
