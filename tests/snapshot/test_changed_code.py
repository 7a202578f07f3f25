"""Files of code that a purge removed or a run changed are noticed at the next submission, named, and replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.snapshot import sending
from tests.snapshot.conftest import Here, OnClusters, Place, assert_arrived
from tests.snapshot.test_send import NO_GIT
from yurt.backends import scripts
from yurt.backends.job import module
from yurt.lab import Lab
from yurt.snapshot import Snapshot, take
from yurt.transport.base import Answer, Host

CHANGES = {
    "removed": 'chmod u+w "$1" && rm -f "$1/plain"',
    "removed below": 'chmod u+w "$1/a/b" && rm -f "$1/a/b/c"',
    "changed": 'chmod u+w "$1/plain" && echo new > "$1/plain"',
    "same size": 'chmod u+w "$1/plain" && printf "CONTENT OF plain" > "$1/plain"',
    "replaced by a link": 'chmod u+w "$1" && rm -f "$1/plain" && ln -s /etc/passwd "$1/plain"',
    "added": 'chmod u+w "$1" && echo more > "$1/sitecustomize.py"',
    "link changed": 'chmod u+w "$1" && ln -sfn elsewhere "$1/link"',
    "not executable": 'chmod a-x "$1/run.sh"',
}


def have(host: Host, folder: str, snapshot: Snapshot) -> Answer:
    return host.run(sending.receiver() + 'have_code "$@"', folder, snapshot.tree)


def change(host: Host, folder: str, snapshot: Snapshot, how: str) -> None:
    assert host.run(CHANGES[how], f"{folder}/snapshots/{snapshot.tree}").code == 0


class ChangedCode:
    @pytest.mark.parametrize("how", ["removed", "changed"])
    def test_a_changed_file(self, place: Place, project: Path, store: Path, how: str) -> None:
        self.check_change(place, project, store, how)

    def check_change(self, place: Place, project: Path, store: Path, how: str) -> None:
        host, folder = place
        snapshot = take(project, store)
        sending.send(host, snapshot, folder)
        assert (have(host, folder, snapshot).code, have(host, folder, snapshot).out) == (0, b"")
        change(host, folder, snapshot, how)
        found = have(host, folder, snapshot)
        name = {
            "removed below": "a/b/c",
            "added": "sitecustomize.py",
            "link changed": "link",
            "not executable": "run.sh",
        }
        assert (found.code, found.text) == (1, f"changed 1 {name.get(how, 'plain')}\n")
        assert sending.send(host, snapshot, folder) > 0, "it is uploaded again"
        assert_arrived(host, project, folder, snapshot.tree)
        assert (have(host, folder, snapshot).code, have(host, folder, snapshot).out) == (0, b"")
        assert host.run('ls -A "$1/incoming"', folder).out == b"", "nothing is left behind"

    @pytest.mark.parametrize("how", ["removed", "changed"])
    def test_a_new_tree_links_no_broken_file(self, place: Place, project: Path, store: Path, how: str) -> None:
        host, folder = place
        first = take(project, store)
        sending.send(host, first, folder)
        change(host, folder, first, how)
        (project / "another").write_text("new")
        second = take(project, store)
        assert sending.send(host, second, folder) > 200_000, "everything is uploaded"
        assert_arrived(host, project, folder, second.tree)

    def test_only_the_times_differ(self, place: Place, project: Path, store: Path) -> None:
        """As after a move to another disk: the content is the same, so nothing is uploaded."""
        host, folder = place
        snapshot = take(project, store)
        sending.send(host, snapshot, folder)
        assert host.run('find "$1" -type f -exec touch -d 2020-01-01 {} +', f"{folder}/snapshots").code == 0
        assert sending.send(host, snapshot, folder) == 0
        assert host.run('rm "$1"', f"{folder}/snapshots/.{snapshot.tree}").code == 0, "the list itself was purged"
        assert sending.send(host, snapshot, folder) == 0
        again = sending.receiver() + 'code_git() { echo content was read; }; have_code "$@"'
        assert host.run(again, folder, snapshot.tree).out == b"", "from now on, the times are enough again"

    def test_without_git(self, place: Place, project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        host, folder = place
        with_git = sending.receiver()
        monkeypatch.setattr(scripts, "receiver", lambda: NO_GIT + with_git)
        snapshot = take(project, store)
        sending.send(host, snapshot, folder)
        assert (have(host, folder, snapshot).code, have(host, folder, snapshot).out) == (0, b"")
        change(host, folder, snapshot, "same size")
        found = have(host, folder, snapshot)
        assert (found.code, found.text) == (1, "changed 1 plain\n")
        assert sending.send(host, snapshot, folder) > 0
        assert_arrived(host, project, folder, snapshot.tree)

    def test_the_first_names_and_their_number(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        snapshot = take(project, store)
        sending.send(host, snapshot, folder)
        remove = 'chmod u+w "$1" && cd "$1" && rm -f plain con "with space" "GIT~1" link'
        assert host.run(remove, f"{folder}/snapshots/{snapshot.tree}").code == 0
        lines = have(host, folder, snapshot).text.splitlines()
        assert len(lines) == 3 and {line.split(" ", 2)[1] for line in lines} == {"5"}


class TestHere(Here, ChangedCode):
    @pytest.mark.parametrize("how", [*CHANGES][1:])
    def test_any_change(self, place: Place, project: Path, store: Path, how: str) -> None:
        self.check_change(place, project, store, how)


class TestOnClusters(OnClusters, ChangedCode):
    pass


@pytest.mark.lab
@pytest.mark.slow
def test_a_run_that_changes_shared_code(laptop: Laptop, lab: Lab) -> None:
    """The next submission names the files and uploads the code again; so does one of a sweep after a purge."""
    for name in ("lib/a.py", "lib/b.py"):
        (laptop.project / name).parent.mkdir(exist_ok=True)
        (laptop.project / name).write_text(f"{name}\n")
    (laptop.project / "data").write_bytes(os.urandom(11_000_000))  # large: not a copy
    change = "for each in lib/a.py lib/b.py; do chmod u+w $(readlink $each) && echo changed >> $each; done"
    first = laptop.run("alpha", "sh", "-c", change)["run"]
    assert laptop.ended(first["id"])["state"] == "completed"
    second = laptop.run("alpha", "cat", "lib/a.py", "lib/b.py")
    assert "changed or removed, and the code was uploaded again: lib/a.py, lib/b.py" in second["warnings"][0]
    laptop.ended(second["run"]["id"])
    assert laptop("logs", second["run"]["id"]).out == "lib/a.py\nlib/b.py\n"
    assert laptop.run("alpha", "true")["warnings"] == []
    base = first["folder"].partition("/projects/")[0]
    script = f"chmod u+w {base}/projects/*/snapshots/*/lib && rm -f {base}/projects/*/snapshots/*/lib/a.py"
    script += f" && rm -f {base}/node/*/yurt/node/metrics.py"
    ssh = Ssh(lab)
    sweep = "import yurt, sys; yurt.log(x=1); print(open('lib/a.py').read())"
    ssh("alpha", script)
    third = laptop.run("alpha", "--grid", "n=1..2", "python3", "-c", sweep)
    assert "lib/a.py" in third["warnings"][0]
    assert laptop.ended(third["run"]["id"])["state"] == "completed"


@pytest.mark.lab
def test_modules_that_runs_import_stay(laptop: Laptop, lab: Lab) -> None:
    """Python writes __pycache__ beside them: that is no reason to replace them, which a running job would notice."""
    program = "import yurt; yurt.log(x=1)"
    words = ("env", "-u", "PYTHONDONTWRITEBYTECODE", "python3", "-c", program)
    first = laptop.run("alpha", *words)["run"]
    assert laptop.ended(first["id"])["state"] == "completed"
    base = first["folder"].partition("/projects/")[0]
    modules = f"{base}/node/{module.name()}"
    ssh = Ssh(lab)
    assert "__pycache__" in ssh("alpha", f"ls {modules}/yurt")
    before = ssh("alpha", f"stat -c %i {modules}")
    assert laptop.ended(laptop.run("alpha", "true")["run"]["id"])["state"] == "completed"
    assert ssh("alpha", f"stat -c %i {modules}") == before
