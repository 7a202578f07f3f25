"""Code is uploaded completely or not at all, cheaply, to this machine and both clusters, also without git there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.snapshot import sending
from tests.snapshot.conftest import Here, OnClusters, Place, assert_arrived, count, listing
from tests.transport.conftest import site
from tests.user import end_masters
from yurt.backends import scripts
from yurt.errors import RefusedError, UnreachableError
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.snapshot import Snapshot, send, take
from yurt.testing.waiting import eventually
from yurt.transport import sockets
from yurt.transport.base import Answer, Host
from yurt.transport.local import LocalHost

NO_GIT = """\
bin=$1/bin && mkdir -p "$bin" && ln -sf /usr/bin/* /bin/* "$bin" 2> /dev/null
rm -f "$bin/git" && PATH=$bin
"""
"""Script prefix that makes the host appear to have no git."""


def receive(host: Host, folder: str, code: send.Code, stdin: bytes | None = None, before: str = "") -> Answer:
    """Outcome of receive_code; then the rest of standard input."""
    script = sending.receiver() + before + 'receive_code "$@"; code=$?; cat; exit $code'
    return host.run(script, folder, *sending.words(code), stdin=code.content + b"the rest" if stdin is None else stdin)


def edit(project: Path) -> None:
    """Changes of every kind."""
    (project / "plain").write_text("edited")
    (project / "a" / "b" / "c").unlink()
    (project / "a" / "b").rmdir()
    (project / "a" / "b").write_text("a file where a folder was")
    (project / "con").unlink()
    (project / "con").mkdir()
    (project / "con" / "x").write_text("and the other way round")
    (project / "-dash").unlink()
    (project / "-dash").symlink_to("plain")
    (project / "link").unlink()
    (project / "link").mkdir()
    (project / "link" / "in a folder where a link was").write_text("x")
    (project / "run.sh").chmod(0o644)


def both(project: Path, store: Path) -> tuple[Snapshot, Snapshot]:
    """A snapshot, and one of the project after changes."""
    first = take(project, store)
    edit(project)
    return first, take(project, store)


class Sending:
    """The suite for each host; `place` is (host, an empty folder on it)."""

    def test_first_unchanged_edited(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        (project / "deep" / "er").mkdir(parents=True)
        (project / "deep" / "er" / "only").write_text("the last one out closes the door")
        first = take(project, store)
        assert sending.send(host, first, folder) > 200_000
        assert_arrived(host, project, folder, first.tree)
        assert host.run('test -x "$1/snapshots/$2/run.sh"', folder, first.tree).code == 0
        assert sending.send(host, first, folder) == 0
        before = listing(host, f"{folder}/snapshots/{first.tree}")
        edit(project)
        shutil.rmtree(project / "deep")
        second = take(project, store)
        assert 0 < sending.send(host, second, folder) < 3000, "only changes are uploaded"
        assert_arrived(host, project, folder, second.tree)
        same = host.run('stat -c %i "$1/snapshots/$2/big" "$1/snapshots/$3/big"', folder, first.tree, second.tree)
        assert len(set(same.text.split())) == 1, "unchanged files are hard links"
        assert listing(host, f"{folder}/snapshots/{first.tree}") == before
        assert (
            host.run('find "$1/snapshots" ! -type l -perm /222 ! -path "*/snapshots/.*"', folder).out.count(b"\n") <= 1
        )

    def test_much_changed(self, place: Place, project: Path, store: Path) -> None:
        """More than a million bytes become a pack on the host, not files."""
        host, folder = place
        packs = 'ls "$1/code.git/objects/pack" | grep -c "pack$"'
        sending.send(host, take(project, store), folder)
        edit(project)
        sending.send(host, take(project, store), folder)
        assert host.run(packs, folder).text == "1\n", "few objects are not packed"
        (project / "huge").write_bytes(os.urandom(1_100_000))
        second = take(project, store)
        assert sending.send(host, second, folder) > 1_000_000
        assert_arrived(host, project, folder, second.tree)
        assert host.run(packs, folder).text == "2\n"

    def test_links_are_not_followed(self, place: Place, project: Path, store: Path) -> None:
        """The target of a link keeps its mode if the link is added, removed, or replaced by a folder."""
        host, folder = place
        make = 'mkdir -p "$1/out/folder" && touch "$1/out/file" && chmod 644 "$1/out/file" && chmod 555 "$1/out/folder"'
        host.run(make, folder)
        for turn in ("links", "folders", "links"):
            for name in ("file", "folder"):
                (project / "in").mkdir(exist_ok=True)
                path = project / "in" / name
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
                if turn == "links":
                    path.symlink_to(f"{folder}/out/{name}")
                else:
                    path.mkdir()
                    (path / "x").write_text("x")
            snapshot = take(project, store)
            sending.send(host, snapshot, folder)
            assert_arrived(host, project, folder, snapshot.tree)
            assert host.run('stat -c %a "$1/out/file" "$1/out/folder"', folder).text == "644\n555\n", turn
            (project / "plain").write_text(turn)

    def test_two_at_once(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        first, second = both(project, store)
        for snapshot in (first, second):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda _, each=snapshot: sending.send(host, each, folder), range(4)))
        assert_arrived(host, project, folder, second.tree)
        others = []
        for number in range(4):
            (project / "plain").write_text(f"different {number}")
            others.append(take(project, store))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: sending.send(host, each, folder), others))
        plain = host.run(
            'cd "$1/snapshots" && shift && for each; do cat $each/plain; done', folder, *(each.tree for each in others)
        )
        assert plain.text == "".join(f"different {number}" for number in range(4))
        assert_arrived(host, project, folder, others[-1].tree)

    def test_another_laptop_builds_on_the_uploaded_tree(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        sending.send(host, take(project, store), folder)
        (project / "plain").write_text("from elsewhere")
        other = take(project, store.with_name("other.git"))
        assert sending.send(host, other, folder) > 200_000
        assert_arrived(host, project, folder, other.tree)
        (project / "plain").write_text("from there on")
        other = take(project, store.with_name("other.git"))
        assert sending.send(host, other, folder) < 3000
        assert_arrived(host, project, folder, other.tree)

    def test_without_git_there(self, place: Place, project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        host, folder = place
        with_git = sending.receiver()
        monkeypatch.setattr(scripts, "receiver", lambda: NO_GIT + with_git)
        snapshot = take(project, store)
        assert host.run(sending.receiver() + 'known_code "$1"', folder).text == "plain\n"
        sending.send(host, snapshot, folder)
        assert_arrived(host, project, folder, snapshot.tree)
        assert host.run('test -e "$1/code.git"', folder).code == 1
        # Git is available again: the checkout cannot serve as a base, and the next snapshot is uploaded completely.
        monkeypatch.setattr(scripts, "receiver", lambda: with_git)
        edit(project)
        snapshot = take(project, store)
        assert sending.send(host, snapshot, folder) > 200_000
        assert_arrived(host, project, folder, snapshot.tree)

    def test_exactly_its_own_bytes_are_read(self, place: Place, project: Path, store: Path) -> None:
        """For every outcome: the bytes that follow belong to the caller."""
        host, folder = place
        first, second = both(project, store)
        whole, changes = send.code_for(first, ()), send.code_for(second, [first.tree])
        bytes_more = send.code_for(second, ["plain"])
        nowhere = send.Code("git", "0" * 40, "", b"%-10d\n" % 5 + b"no pack")
        for code, before, expected in [
            (whole, NO_GIT, 46),
            (changes, "", 47),
            (nowhere, "", 1),
            (whole, "", 0),
            (whole, "", 0),
            (changes, "", 0),
            (changes, "", 0),
            (bytes_more, "", 0),
        ]:
            answer = receive(host, folder, code, before=before)
            assert (answer.code, answer.out) == (expected, b"the rest"), answer.errors
            assert (expected == 1) <= bool(answer.errors)
        assert_arrived(host, project, folder, second.tree)
        assert host.run('ls "$1/snapshots"', folder).text.split() == sorted([first.tree, second.tree])

    def test_input_that_ends_early(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        first, second = both(project, store)
        whole = send.code_for(first, ())
        for length in (5, 300, len(whole.content) - 1):
            assert receive(host, folder, whole, whole.content[:length]).code == 45, length
        sending.send(host, first, folder)
        for code in (send.code_for(second, [first.tree]), send.code_for(second, ["plain"])):
            for length in (0, len(code.content) - 1):
                assert receive(host, folder, code, code.content[:length]).code == 45, (code.kind, length)
        assert host.run('ls "$1/snapshots"; ls -A "$1/incoming"', folder).text.split() == [first.tree]

    def test_missing_or_damaged_base(self, place: Place, project: Path, store: Path) -> None:
        """Then everything is uploaded, and later uploads build on that."""
        host, folder = place
        for number, harm in enumerate(
            [
                'chmod -R u+w "$1/snapshots" && rm -rf "$1/snapshots/$2"',
                'rm -rf "$1/code.git"',
                'find "$1/code.git" -type f -exec chmod u+w {} + -exec truncate -s 0 {} +',
                'echo no > "$1/code.git/HEAD"',
            ]
        ):
            (project / "plain").write_text(f"good {number}")
            good = take(project, store)
            sending.send(host, good, folder)
            host.run(harm, folder, good.tree)
            (project / "plain").write_text(f"after {number}")
            after = take(project, store)
            answer = receive(host, folder, send.code_for(after, [good.tree]))
            assert (answer.code, answer.out) == (47, b"the rest"), harm
            if not number:  # another base may still be intact
                continue
            assert sending.send(host, after, folder) > 200_000, harm
            (project / "plain").write_text(f"healed {number}")
            healed = take(project, store)
            assert sending.send(host, healed, folder) < 3000, harm
            assert_arrived(host, project, folder, healed.tree)

    def test_the_callers_shell_is_unchanged(self, place: Place, project: Path, store: Path) -> None:
        """Variables, options, working directory, umask and traps; also those that could interfere."""
        host, folder = place
        first, second = both(project, store)
        script = (
            sending.receiver()
            + """
            cd / && umask 022 && trap 'echo trapped' EXIT && IFS=a && set -fu && CDPATH=/tmp
            project=$1 code=0 notes=$(mktemp -d) && shift
            state() { (set; umask; pwd; echo "$-") | grep -v -e ^_ -e ^LINENO -e ^PIPESTATUS -e ^BASH -e ^FUNC; }
            state > "$notes/before"
            { receive_code "$project" "$1" "$2" "$3" "$4" || code=$?; } > "$notes/said"
            cat "$notes/said"
            have_code "$project" "$2" || echo missing
            known_code "$project" > /dev/null
            collect_code "$project" || echo failed
            state > "$notes/after"
            diff "$notes/before" "$notes/after" && rm -r "$notes"
            echo $code
            """
        )
        for code in (send.code_for(first, ()), send.code_for(second, [first.tree]), send.code_for(second, ["plain"])):
            answer = host.run(script, folder, *sending.words(code), stdin=code.content)
            assert answer.text == "0\ntrapped\n", answer
        assert_arrived(host, project, folder, second.tree)

    def test_known_trees(self, place: Place) -> None:
        host, folder = place
        ask = sending.receiver() + 'known_code "$1"; keep_code "$1" "$2"'
        answer = host.run(ask, folder, "4" * 40)
        assert (answer.code != 0, answer.out) == (True, b"")
        trees = [f"{number:040}" for number in range(25)]
        make = 'cd "$1/snapshots" && shift && for each; do mkdir -m 500 $each; touch -d "$((age -= 1)) days ago" $each; done'
        host.run(f'mkdir -p "$1/snapshots" && age=30 && {make}', folder, *trees)
        answer = host.run(ask, folder, trees[3])
        assert (answer.code, answer.text.split()) == (0, trees[:4:-1]), "the newest twenty"
        assert host.run(ask, folder, trees[0]).text.split()[0] == trees[3], "the query marked it as recently used"
        assert host.run(ask, folder, "").code != 0

    def test_leftovers_of_killed_uploads(self, place: Place, project: Path, store: Path) -> None:
        host, folder = place
        make = 'mkdir -p "$1/incoming/old/d" "$1/incoming/new" && touch "$1/incoming/old/d/f" && chmod -R a-w "$1/incoming/old"'
        host.run(make + '&& touch -d "25 hours ago" "$1/incoming/old"', folder)
        sending.send(host, take(project, store), folder)
        assert host.run('ls -A "$1/incoming"', folder).text == "new\n"


def test_an_upload_of_another_process_ends_meanwhile(project: Path, store: Path) -> None:
    """Its folder is listed, and then gone, as this link is."""
    _first, second = both(project, store)
    (store / "upload-gone").symlink_to("nowhere")
    assert send.code_for(second, []).content


class TestHere(Here, Sending):
    pass


class TestOnClusters(OnClusters, Sending):
    pass


@pytest.mark.parametrize("shell", [["dash"], ["bash", "--posix"], ["bash"]], ids=" ".join)
def test_shells(tmp_path: Path, project: Path, store: Path, shell: list[str]) -> None:
    """Any of them may be `sh` on a host."""
    first, second = both(project, store)
    far = tmp_path / "far"
    script = sending.receiver() + 'cd / && receive_code "$@"; code=$?; cat; exit $code\n'
    codes = [send.code_for(first, ()), send.code_for(second, [first.tree])]
    for code in codes:
        done = subprocess.run(
            [*shell, "-c", script, "sh", str(far), *sending.words(code)],
            input=code.content + b"the rest",
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"the rest", b"")
    assert_arrived(LocalHost(), project, str(far), second.tree)
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.parametrize("kind", ["all", "changes", "tar"])
@pytest.mark.slow("changes")
def test_killed_at_any_moment(tmp_path: Path, project: Path, store: Path, kind: str) -> None:
    """The receiver is killed with its process group after some steps; the next one completes the upload."""
    here, folder = LocalHost(), tmp_path / "far"
    first = take(project, store)
    before = listing(here, str(project))
    if kind == "changes":
        edit(project)
    snapshot = take(project, store)
    code = send.code_for(snapshot, {"all": [], "changes": [first.tree], "tar": ["plain"]}[kind])
    done, finished = folder / "snapshots" / snapshot.tree, 0
    for steps in range(1, 75, 5):
        if kind == "changes":
            sending.send(here, first, str(folder))
        # A shell that dies at the start of its Nth command, in any subshell.
        trap = f"n=0; set -T; trap 'n=$((n+1)); [ $n -lt {steps} ] || kill -9 0' DEBUG\n"
        (tmp_path / "script").write_text(f'{sending.receiver()}{trap}receive_code "$@"\n')
        subprocess.run(
            ["setsid", "-w", "bash", str(tmp_path / "script"), str(folder), *sending.words(code)],
            input=code.content,
            capture_output=True,
            check=False,
        )
        if kind == "changes":
            assert listing(here, str(folder / "snapshots" / first.tree)) == before, steps
        if done.exists():
            assert listing(here, str(done)) == listing(here, str(project)), steps
            finished += 1
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
            shutil.rmtree(folder)
    assert 0 < finished < 12
    sending.send(here, snapshot, str(folder))
    assert listing(here, str(done)) == listing(here, str(project))
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def test_a_slow_copy_of_the_base_is_waited_for(tmp_path: Path, project: Path, store: Path) -> None:
    """Also if the outcome is known earlier: nothing that the copy writes later is left."""
    here, folder = LocalHost(), str(tmp_path / "far")
    first, second = both(project, store)
    sending.send(here, first, folder)
    shutil.rmtree(f"{folder}/code.git")
    slow = f'cp() {{ sleep 0.3; mkdir -p "${{3%/*}}"; command cp "$@"; : > {tmp_path}/copied; }}\n'
    assert receive(here, folder, send.code_for(second, [first.tree]), before=slow).code == 47
    eventually((tmp_path / "copied").exists)
    assert os.listdir(f"{folder}/incoming") == []
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("words", "expected"), [("No space left on device", 1), ("Disk quota exceeded", 1), ("object is corrupt", 47)]
)
def test_a_full_disk_does_not_cause_a_full_upload(
    tmp_path: Path, project: Path, store: Path, words: str, expected: int
) -> None:
    here, folder = LocalHost(), str(tmp_path / "far")
    first, second = both(project, store)
    sending.send(here, first, folder)
    failing = f"code_git() {{ echo 'error: {words}' >&2; return 128; }}\n"
    answer = receive(here, folder, send.code_for(second, [first.tree]), before=failing)
    assert (answer.code, answer.out) == (expected, b"the rest")
    assert (words in answer.errors) == (expected == 1)
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def test_a_file_system_without_links(
    tmp_path: Path, project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, folder = LocalHost(), str(tmp_path / "far")
    first, second = both(project, store)
    sending.send(here, first, folder)
    links = sending.receiver()
    monkeypatch.setattr(scripts, "receiver", lambda: links + 'cp() { command cp -r "$2" "$3" && return 1; }\n')
    assert sending.send(here, second, folder) < 3000
    assert_arrived(here, project, folder, second.tree)
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.lab
def test_connection_lost_during_upload(lab: Lab, project: Path, store: Path) -> None:
    snapshot = take(project, store)
    folder = f"/lustre/scratch/alice/cut {next(count)}"
    try:
        for cut_at in (5_000, 60_000, 180_000):
            lab.faults.delay("alpha", Rules(cut_at=cut_at, direction="up", connections=1))
            end_masters(sockets.folder())  # only a new connection gets the fault
            host = site(lab, "alpha")
            with pytest.raises(UnreachableError):
                sending.send(host, snapshot, folder)
            assert host.run('ls "$1/snapshots" 2> /dev/null', folder).out == b""
    finally:
        lab.faults.heal("alpha")
    host = site(lab, "alpha")
    sending.send(host, snapshot, folder)
    assert_arrived(host, project, folder, snapshot.tree)
    host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


@pytest.mark.lab
def test_full_disk(lab: Lab, project: Path, store: Path) -> None:
    host = site(lab, "alpha")
    folder = "/lustre/project/alice/full"
    for words in ("first", "and with something to go on from"):
        (project / "plain").write_text(words)
        lab.faults.full("alpha:project")
        try:
            with pytest.raises(RefusedError) as caught:
                sending.send(host, take(project, store), folder)
            assert caught.value.code == "disk-full"
        finally:
            lab.faults.free("alpha:project")
        sending.send(host, take(project, store), folder)
    host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


def test_checkouts_are_private(tmp_path: Path, project: Path, store: Path) -> None:
    snapshot = take(project, store)
    sending.send(LocalHost(), snapshot, str(tmp_path / "far"))
    assert stat.S_IMODE((tmp_path / "far" / "snapshots" / snapshot.tree).stat().st_mode) == 0o500
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)
