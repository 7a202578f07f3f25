"""Old checkouts are removed, used ones stay, also under concurrent submissions."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.snapshot import sending
from tests.snapshot.conftest import Here, OnClusters, Place, assert_arrived
from yurt.snapshot import take
from yurt.transport.base import Host
from yurt.transport.local import LocalHost

MAKE = """\
project=$1 && shift && mkdir -p "$project/snapshots" && cd "$project"
for each; do
  tree=${each%%:*} days=${each##*:}
  mkdir -p snapshots/$tree/d && echo $tree > snapshots/$tree/d/file && chmod -R a-w snapshots/$tree
  touch -d "$((days * 24 * 60 + 5)) minutes ago" snapshots/$tree
done
"""

NEWEST = [f"new{number}:{number}" for number in range(5)]
"""Five checkouts that always stay."""


def make(host: Host, folder: str, *checkouts: str) -> None:
    """Checkouts NAME:DAYS-OLD, read-only like real ones."""
    assert host.run(MAKE, folder, *checkouts).code == 0


def collect(host: Host, folder: str, before: str = "") -> set[str]:
    """Remaining old checkouts; `before` may replace functions and commands."""
    answer = host.run(sending.receiver() + before + '\ncollect_code "$1"', folder)
    assert (answer.code, answer.out, answer.err) == (0, b"", b"")
    assert host.run('ls -A "$1/incoming" 2> /dev/null', folder).out == b"", "nothing is left behind"
    assert (
        host.run('find "$1/snapshots" -mindepth 1 ! -type l -perm /222 ! -path "*/snapshots/.*"', folder).out == b""
    ), "what stays is read-only"
    names = host.run('ls "$1/snapshots"', folder).text.split()
    assert {name for name in names if name.startswith("new")} == {name.split(":")[0] for name in NEWEST}
    return {name for name in names if not name.startswith("new")}


def write(host: Host, folder: str, path: str, text: str = "") -> None:
    assert host.run('cd "$1" && mkdir -p "${2%/*}" && printf "$3" > "$2"', folder, path, text).code == 0


class Collecting:
    def test_which_checkouts_are_removed(self, place: Place) -> None:
        host, folder = place
        make(host, folder, *NEWEST, "week:7", "six:6", "run:30", "done:30", "sweep:30", "both:30", "none:30")
        write(host, folder, "runs/1/code", "run\\n")
        write(host, folder, "runs/2/code", "done\\n")
        write(host, folder, "runs/2/exit.json", "{}")
        write(host, folder, "runs/3/code", "both\\n")
        write(host, folder, "runs/3/exit.json", "{}")
        write(host, folder, "runs/4/code", "both")  # no newline at the end
        write(host, folder, "runs/5/other")
        write(host, folder, "sweeps/1/code", "sweep\\n")
        write(host, folder, "sweeps/1/exit.json", "{}")
        watched = 'mv() { echo "${2#snapshots/}" >> moved; command mv "$@"; }'
        assert collect(host, folder, watched) == {"six", "run", "sweep", "both"}
        moved = host.run('sort "$1/moved"', folder).text.split()
        assert moved == ["done", "none", "week"], "a checkout in use is never moved"
        write(host, folder, "runs/1/exit.json", "{}")
        assert host.run(sending.receiver() + 'keep_code "$1" run', folder).code == 0
        write(host, folder, "runs/4/exit.json", "{}")
        assert collect(host, folder) == {"six", "run", "sweep"}, "a checkout that was just used counts as new"

    def test_few_checkouts_are_kept(self, place: Place) -> None:
        host, folder = place
        assert host.run(sending.receiver() + 'collect_code "$1"', folder).code == 0, "an empty folder"
        make(host, folder, *(f"{name.split(':')[0]}:90" for name in NEWEST))
        watched = 'for each in find mktemp mv rm chmod mkdir; do eval "$each() { echo $each >> called; }"; done'
        assert collect(host, folder, watched) == set()
        assert host.run('cat "$1/called"', folder).out == b"", "and nothing is done"
        make(host, folder, "older:91")
        assert collect(host, folder) == set()

    def test_used_during_the_removal(self, place: Place) -> None:
        """A submission comes between the check and the rename: it touches the checkout, or its run exists by then."""
        host, folder = place
        make(host, folder, *NEWEST, "touched:30", "run:30", "none:30")
        before = """
        mv() {
          case $3 in
            incoming/*/touched) keep_code . touched ;;
            incoming/*/run) mkdir -p runs/9 && echo run > runs/9/code ;;
          esac
          command mv "$@"
        }
        """
        assert collect(host, folder, before) == {"touched", "run"}
        assert collect(host, folder) == {"touched", "run"}

    def test_uploaded_again_during_the_removal(self, place: Place) -> None:
        """It was renamed, so a submission uploaded it again; the new one stays."""
        host, folder = place
        make(host, folder, *NEWEST, "again:30")
        before = """
        mv() {
          command mv "$@" || return
          case $3 in incoming/*/again) mkdir -p snapshots/again/anew && touch "$3" && chmod -R a-w snapshots/again ;; esac
        }
        """
        assert collect(host, folder, before) == {"again"}
        assert host.run('ls "$1/snapshots/again"', folder).text == "anew\n"

    def test_many_objects_are_removed_and_the_next_upload_works(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        first = take(project, store)
        sending.send(host, first, folder)
        make(host, folder, *NEWEST, "old:30")
        many = 'mkdir -p "$1/code.git/objects/17" && cd "$1/code.git/objects/17" && touch $(seq 50)'
        host.run('touch "$1/snapshots/$2"', folder, first.tree)
        assert collect(host, folder) == {first.tree}
        assert host.run('ls "$1/code.git/objects/pack"', folder).out, "few objects are kept"
        host.run(many, folder)
        make(host, folder, "used:30")
        write(host, folder, "runs/1/code", "used")
        assert collect(host, folder) == {first.tree, "used"}
        assert host.run('ls "$1/code.git/objects/pack"', folder).out, "no checkout was removed"
        make(host, folder, "old:30")
        assert collect(host, folder) == {first.tree, "used"}
        assert host.run('ls "$1/code.git"', folder).out == b""
        (project / "plain").write_text("edited")
        second = take(project, store)
        sending.send(host, second, folder)
        assert_arrived(host, project, folder, second.tree)


class TestHere(Here, Collecting):
    pass


class TestOnClusters(OnClusters, Collecting):
    pass


def test_the_next_upload_cleans_up_after_a_killed_collector(tmp_path: Path, project: Path, store: Path) -> None:
    folder, here = tmp_path / "far", LocalHost()
    make(here, str(folder), *NEWEST, "old:30")
    script = f"{sending.receiver()}code_remove() {{ kill -9 0; }}\ncollect_code '{folder}'"
    subprocess.run(["setsid", "-w", "sh", "-c", script], check=False)
    assert not (folder / "snapshots" / "old").exists()
    left = next((folder / "incoming").iterdir())
    sending.send(here, take(project, store), str(folder))
    assert left.exists(), "it might still be running"
    subprocess.run(["touch", "-d", "2 days ago", str(left)], check=True)
    (project / "plain").write_text("edited")
    sending.send(here, take(project, store), str(folder))
    assert not left.exists()
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def test_a_checkout_reported_as_present_stays(tmp_path: Path) -> None:
    """Repeatedly run a collector and a submission at the same time."""
    folder, here = tmp_path / "far", LocalHost()
    make(here, str(folder), *NEWEST)
    kept = 0
    with ThreadPoolExecutor(2) as pool:
        for turn in range(20):
            make(here, str(folder), "old:30")
            wait = f"sleep 0.0{turn % 10}\n"
            collecting = pool.submit(here.run, sending.receiver() + 'collect_code "$1"', str(folder))
            having = pool.submit(here.run, sending.receiver() + wait + 'keep_code "$1" old', str(folder))
            assert collecting.result().code == 0
            there = (folder / "snapshots" / "old" / "d" / "file").exists()
            assert (having.result().code == 0) == there, turn
            kept += there
            if there:
                subprocess.run(["chmod", "-R", "u+w", str(folder / "snapshots" / "old")], check=True)
                shutil.rmtree(folder / "snapshots" / "old")
    assert 0 < kept < 20, "they never ran at the same time"
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def test_files_shared_with_other_checkouts_stay_as_they_are(tmp_path: Path, project: Path, store: Path) -> None:
    """Removing one checkout does not make the hard-linked files of another writable."""
    folder, here = str(tmp_path / "far"), LocalHost()
    first = take(project, store)
    sending.send(here, first, folder)
    (project / "plain").write_text("edited")
    second = take(project, store)
    sending.send(here, second, folder)
    make(here, folder, *NEWEST)
    # For a user who is not root, rm fails in a folder that is not writable.
    script = (
        sending.receiver() + 'rm() { [ -w "$2" ] && [ -z "$(find "$2" -type d ! -perm -200)" ] && command rm "$@"; }\n'
    )
    here.run('touch -d "30 days ago" "$1/snapshots/$2"', folder, first.tree)
    assert here.run(script + 'collect_code "$1"', folder).code == 0
    assert not Path(folder, "snapshots", first.tree).exists()
    assert_arrived(here, project, folder, second.tree)
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)
