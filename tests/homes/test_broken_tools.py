"""A place whose tools fail one after the other: what a script could not find out is an error, or counts as unknown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.backends.test_broken_tools import shim
from yurt.backends import scripts as backend_scripts
from yurt.errors import YurtError
from yurt.homes import backups, deletions, guard, ignores, quick, scripts, versions
from yurt.transport.base import Answer
from yurt.transport.local import LocalHost

NAMES = """\
awk cat cksum cmp cp cut date df env find grep head id ln ls mkdir mv od rm sed sh sha256sum sort stat tail tee timeout
tr uname wc xargs"""
ROW = "12|2026-11-15T06:38:09|JobHeldUser|0|home_sync"
TOOLS = {name: f'exec {shutil.which(name)} "$@"' for name in NAMES.split()} | {
    "squeue": f"echo 'JOBID|SUBMIT_TIME|REASON|PRIORITY|COMMENT'; echo '{ROW}'",
    "scontrol": "exit 0",
}
DATED = "20261117T035512Z-k3x"


class Home(NamedTuple):
    root: Path
    tools: Path
    host: LocalHost

    def run(self, script: str, *words: str, stdin: bytes = b"", timeout: float = 60) -> Answer:
        return self.host.run(f"UNISON={self.root.parent}/unison\n{script}", *words, stdin=stdin, timeout=timeout)

    @property
    def place(self) -> Any:
        homes = SimpleNamespace(backups=str(self.root.parent / "backups"))
        facts = {"name": "alpha", "here": False, "root": str(self.root), "folder": str(self.root)}
        return SimpleNamespace(**facts, homes=homes, host=self.host, run=self.run)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home", tmp_path / "tools", LocalHost())
    made.tools.mkdir()
    made.host.prelude = f"PATH={made.tools}:$PATH\n{backend_scripts.plain_slurm()}"
    for name in ("home/data/one", "home/data/two", "home/note", f"backups/{DATED}/note", "unison/yurt/waiting.t"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "home/.yurt-home").write_text("files\n")
    return made


def _counted(home: Home) -> Any:
    return deletions._count(home.place, ["data", "note", "gone"], "")


def _survey(home: Home) -> Any:
    return guard.survey([home.place], "").folders


def _listed(home: Home) -> Any:
    found = backups.listed([home.place])
    for error in found.errors.values():
        raise error
    return [(each.path, each.dated, each.size) for each in found.backups]


def _looked(home: Home) -> Any:
    found, errors = versions.look([home.place], {"alpha": ["note", "data"]})
    for error in errors:
        raise error
    return [(each.kind, each.size, each.files) for each in found["alpha"].values()]


def _restored(home: Home) -> Any:
    (home.root / "note").write_text("newer")
    made = backups.restore(home.place, DATED, "note")
    return made.files, bool(made.replaced), (home.root / "note").read_text()


def _waiting(home: Home) -> Any:
    answer = home.run(f"{scripts.gate()}home_waiting")
    if answer.code:
        raise YurtError(answer.errors, code="site-refused")
    return answer.text


def _listed_at_the_start(home: Home) -> Any:
    """A sync begins: the list of jobs that wait for it is complete, or says that it is not."""
    settings = scripts.assign(here="", partly="", token="t") + scripts.gate() + scripts.text("side.sh")
    assert home.run(f"{settings}\nlist_waiting; wait").code == 0
    found = (home.root.parent / "unison/yurt/waiting.t").read_text()
    if found == "?\n":
        raise YurtError("not listed", code="site-refused")
    return found


def _same(home: Home) -> Any:
    """Something has changed since the last sync: the next one is not left out."""
    mark = home.root.parent / "unison/yurt/began.r"
    mark.write_text("t\n")
    (home.root / "note").write_text("changed")
    script = scripts.assign(margin="2") + scripts.gate() + quick.SCRIPT.read_text()
    script = script.replace("@IGNORED@", ignores.read("").expression)
    return home.run(script, "r", str(home.root), "1", "t").text


def _unsure(home: Home) -> Any:
    """The size of a file that was edited during a sync is no proof: the next sync compares contents."""
    (home.root.parent / "unison/yurt/began.r").write_text("t\n")
    (home.root / "note").write_text("edited")
    script = f'UNISON={home.root.parent}/unison\n{scripts.text("sure.sh")}sure_save r "$1" ./note; '
    saved = home.run(script, str(home.root))
    return (home.root.parent / "unison/yurt/unsure.r").exists(), saved.text


OPERATIONS: dict[str, Callable[[Home], Any]] = {
    "count": _counted,
    "survey": _survey,
    "backups": _listed,
    "newest": lambda home: backups.newest([home.place], "note")[1],
    "restore": _restored,
    "versions": _looked,
    "waiting": _waiting,
    "waiting_at_the_start": _listed_at_the_start,
    "same": _same,
    "unsure": _unsure,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_tool_fails(home: Home, name: str) -> None:
    call, used, wrong = OPERATIONS[name], home.tools.parent / "used", []
    used.write_text("")
    for tool, does in TOOLS.items():
        shim(home.tools, tool, f"echo {tool} >> {used}\n{does}")
    truth = call(home)
    for tool, does in TOOLS.items():
        shim(home.tools, tool, does)
    for tool in sorted(set(used.read_text().split())):
        shim(home.tools, tool, "exit 1")
        try:
            found = call(home)
        except YurtError:
            pass
        else:
            if found != truth:
                wrong.append(f"without {tool}:\n  {found}\n  instead of {truth}")
        shim(home.tools, tool, TOOLS[tool])
    assert not wrong, "\n".join(wrong)
