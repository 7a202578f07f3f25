"""The builder of environments with real pip and uv: uploaded files, hashes, and an index that lacks packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.wheels import make_repository, tiny
from yurt.backends import scripts
from yurt.backends.shell.env_answers import read_states
from yurt.backends.shell.envs import REMOVE, builder
from yurt.envs import uv_program
from yurt.lab.index import Index

PLAIN = 65534
"""The id of a user without permissions."""


@pytest.fixture(params=["pip", "uv"])
def uv(request: pytest.FixtureRequest) -> str:
    """The program that installs; empty for pip."""
    return uv_program.find() if request.param == "uv" else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an environment."""
    made = tmp_path / "base" / "envs" / "abc"
    made.mkdir(parents=True)
    return made


def line(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} \\\n    --hash=sha256:{digest(wheel)}\n"


def digest(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def build(
    folder: Path, uv: str, shelf: Path | None, *, index: str = "", nonce: str = "1234abcd", kind: str = "lock"
) -> str:
    """Run the builder with a folder of packages in place of an index, in pip's settings; return its output."""
    script = folder / "build.sh"
    script.write_text(builder())
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    settings = folder / "pip.conf"
    settings.write_text(f"[global]\nno-index = true\nfind-links =\n    {shelf}\n" if shelf else "")
    if index:
        settings.write_text(f"[global]\nindex-url = {index}\n")
    argv = ["setsid", "-w", "bash", str(script), str(folder), nonce, kind, sys.executable, uv, "", ""]
    subprocess.run(argv, env=plain | {"PIP_CONFIG_FILE": str(settings)}, check=False, timeout=120)
    return (folder / "build.log").read_text()


def installed(folder: Path) -> set[str]:
    assert (folder / "ready").exists(), (folder / "build.log").read_text()
    found = (folder / "env-1234abcd").glob("lib/python*/site-packages/*.dist-info")
    return {each.name.removesuffix(".dist-info") for each in found if not each.name.startswith(("pip", "setuptools"))}


def addressed(folder: Path) -> str:
    """Return lines for a package in a repository, which has no hash, and for one at an address, which has one."""
    url = make_repository(folder / "thing", "thing", "4.5").replace("///", "//localhost/")  # pip 23 needs a host
    head = ["git", "-C", str(folder / "thing"), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    direct = tiny(folder, "direct")
    return f"thing @ git+{url}@{commit}\ndirect @ {direct.as_uri()} \\\n    --hash=sha256:{digest(direct)}\n"


@pytest.mark.slow("pip")
def test_what_the_index_lacks_is_listed_and_then_taken_from_uploads(folder: Path, uv: str, tmp_path: Path) -> None:
    shelf, aside = tmp_path / "shelf", tmp_path / "aside"
    there, behind, unknown = tiny(shelf, "there"), tiny(aside, "behind", "2.0"), tiny(aside, "unknown")
    tiny(shelf, "behind", "1.0")
    house = tiny(tmp_path / "house", "fast", "1.0+site")
    lines = [line(there), addressed(tmp_path / "addressed"), *map(line, (behind, unknown, house))]
    (folder / "lock").write_text("".join([f"# wheelhouse fast {house}\n", *lines]))
    (folder / "wheels").write_text(f"{house}\n")
    (folder / "wait.7").touch()
    log = build(folder, uv, shelf)
    assert set((folder / "lacking").read_text().split()) == {"behind", "unknown"}, log
    assert not (folder / "failed").exists() and (folder / "wait.7").exists(), "its job stays held"
    for wheel in (behind, unknown):
        target = folder.parent.parent / "wheels" / digest(wheel) / wheel.name
        target.parent.mkdir(parents=True)
        wheel.rename(target)
    uploads = [f"{each.parent.name}/{each.name}\n" for each in folder.parent.parent.glob("wheels/*/*")]
    if uv:  # pip is slower
        (folder / "wheels").write_text("".join([*uploads[:1], f"{house}\n"]))
        build(folder, uv, shelf)
        assert (folder / "failed").exists() and not (folder / "lacking").exists(), "it is not repeated for ever"
    (folder / "wheels").write_text("".join([*uploads, f"{house}\n"]))
    build(folder, uv, shelf)
    assert installed(folder) == {"there-1.0", "behind-2.0", "unknown-1.0", "fast-1.0+site", "thing-4.5", "direct-1.0"}
    assert not (folder / "failed").exists() and not (folder / "wait.7").exists()
    assert writable(folder / "env-1234abcd") == []


def test_any_index_may_have_the_locked_file(folder: Path, tmp_path: Path) -> None:
    """uv would only look at the first index that has the package; pip looks at all."""
    locked = tiny(tmp_path, "one", "2.0")
    Index(tmp_path / "usual").add([locked])
    Index(tmp_path / "extra").add([tiny(tmp_path, "one", "1.0")])
    names = (("index-url", "usual"), ("extra-index-url", "extra"))
    options = [f"--{option} {(tmp_path / name / 'simple').as_uri()}\n" for option, name in names]
    (folder / "lock").write_text("".join([*options, line(locked)]))
    build(folder, uv_program.find(), None)
    assert installed(folder) == {"one-2.0"}


def writable(folder: Path) -> list[Path]:
    """Return what somebody may write to, in a folder and itself."""
    return [each for each in (folder, *folder.rglob("*")) if not each.is_symlink() and each.stat().st_mode & 0o222]


def test_it_is_read_only_and_checked_by_its_list(folder: Path, tmp_path: Path) -> None:
    wheels = [tiny(tmp_path / "shelf", name) for name in ("one", "two")]
    (folder / "lock").write_text("".join(map(line, wheels)))
    (folder / "pack").touch()
    build(folder, uv_program.find(), tmp_path / "shelf")
    env, copy = folder / "env-1234abcd", tmp_path / "copy"
    assert {"one-1.0", "two-1.0"} <= set((env / ".packages").read_text().split())
    assert writable(env) == []
    copy.mkdir()
    subprocess.run(["tar", "-x", "-p", "-f", f"{env}.tar", "-C", copy], check=True)
    assert len(writable(copy)) == sum(not each.is_symlink() for each in (copy, *copy.rglob("*"))), "its job removes it"

    parts = [scripts.text(name, "job") for name in ("environment.sh", "env_state.sh")]
    use = "".join(parts) + f"yurt_recorded={tmp_path}/why; use_env {folder} && command -v python"

    def used() -> str:
        done = subprocess.run(["bash", "-c", use], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def seen() -> tuple[str, str]:
        text = scripts.text("env_state.sh", "job") + scripts.text("env_look.sh")
        argv = ["bash", "-c", text, "bash", "yes", "0", "", str(folder)]
        (state,) = read_states(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        return state.condition, state.change

    assert used() == f"{env}/bin/python\n" and seen() == ("ready", "")
    (site,) = env.glob("lib/python*/site-packages")
    site.chmod(0o700)
    (site / "tqdm-4.67.1.dist-info").mkdir()
    shutil.move(site / "one-1.0.dist-info", tmp_path)
    change = "one-1.0 is missing, tqdm-4.67.1 was added"
    why = f"its environment abc is not as it was built: {change}; submit the run again, and yurt builds it again"
    assert used() == f"yurt: {why}\n"
    assert seen() == ("changed", change)
    build(folder, uv_program.find(), tmp_path / "shelf", nonce="5678abcd")
    assert seen() == ("ready", "") and used() == f"{folder}/env-5678abcd/bin/python\n"
    assert env.exists(), "a run may still be using it"


CONDA = """\
#!/bin/sh
[ "$1" != list ] || exit 0
while [ "$1" != -p ]; do shift; done
mkdir -p "$2/bin" "$2/conda-meta" && ln -s {python} "$2/bin/python" && ln {cache}/library "$2/library"
echo > "$2/own" && echo > "$2/conda-meta/tiny-1.0-0.json"
"""


def test_what_conda_shares_with_its_cache_stays_writable(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, program = tmp_path / "cache", tmp_path / "bin" / "conda"
    for each in (cache, program.parent):
        each.mkdir()
    (cache / "library").touch(0o644)
    program.write_text(CONDA.format(python=sys.executable, cache=cache))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (folder / "environment.yml").touch()
    log = build(folder, "", None, kind="conda")
    env = folder / "env-1234abcd"
    assert writable(env) == [env / "library"], log
    assert (env / ".packages").read_text() == "tiny-1.0-0\n"


@pytest.mark.parametrize("how", ["remove", "prune", "build"])
def test_a_read_only_environment_is_removed(how: str) -> None:
    """By a plain user: permissions do not stop root."""
    user: dict[str, Any] = {} if os.geteuid() else {"user": PLAIN, "group": PLAIN, "extra_groups": []}
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        folder = Path(top) / "envs" / "0123456789abcdef"
        for name in ("env-1", "env-2"):
            (folder / name / "lib" / "deep").mkdir(parents=True)
            (folder / name / "lib" / "deep" / "file").touch()
        for name, text in {"lock": "x", "ready": "env-2 3 1", "retired": "env-1 3 1\n"}.items():
            (folder / name).write_text(text)
        if user:
            subprocess.run(["chown", "-R", f"{PLAIN}:{PLAIN}", top], check=True)
        subprocess.run(["chmod", "-R", "a-w", folder / "env-1", folder / "env-2"], check=True)
        state = scripts.text("env_state.sh", "job")
        chosen = [top, top, "60", "", f"replaced:{folder.name}"]
        script, words = {
            "remove": (REMOVE, [str(folder)]),
            "prune": (f"queue() {{ :; }}\n{state}{scripts.text('env_prune.sh')}", chosen),
            "build": (f'{state}remove_env_files "$@"', [f"{folder}/env-1", f"{folder}/absent"]),
        }[how]
        subprocess.run(["bash", "-c", script, "bash", *words], check=True, cwd="/", **user)
        kept = {
            "remove": {"lock"},
            "prune": {"lock", "ready", "env-2"},
            "build": {"lock", "ready", "env-2", "retired"},
        }[how]
        assert {each.name for each in folder.iterdir()} == kept
        subprocess.run(["chmod", "-R", "u+w", top], check=True)
