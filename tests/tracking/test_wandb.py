"""`yurt wandb sync`: real offline runs of W&B, and small programs in place of its server and of `wandb`."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.user import User, said
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.tracking import wandb_folders as wandb

TRAIN = """\
import os, wandb
with wandb.init(project="p") as run:
    run.log({"loss": 1})
print(os.environ["WANDB_DIR"] == os.environ["YURT_OUTPUTS"])
"""

FAKE = """\
#!/bin/sh
echo "$1 ${2##*/} ${WANDB_API_KEY-no key} ${WANDB_MODE-no mode}" >> "$HERE/calls"
[ -e "$2"/run-*.wandb ] || exit 7
[ -z "$(ls -A)" ] && [ "$WANDB_DIR" = "$PWD" ] || exit 8
find "$2" -type l -o -name '*.synced' >> "$HERE/odd"
while [ -e "$HERE/hold-${2##*/}" ]; do : > "$HERE/held-${2##*/}"; sleep 0.1; done
[ ! -e "$HERE/fail" ] || { echo "it is broken"; echo; exit 3; }
[ ! -e "$HERE/refuse" ] || { echo "wandb: ERROR no such user"; exit 0; }
for each in "$2"/*.wandb; do : > "$each.synced"; done
echo "synced $2"
"""


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server of W&B that does not know the user."""

    answer = b'{"errors":[{"message":"no such user"}]}'

    def do_POST(self) -> None:
        self.server.calls.append(self.path)  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_words: object) -> None:
        """Print nothing."""


@contextmanager
def refusing() -> Iterator[tuple[str, list[str]]]:
    """Run such a server; yield its address and the paths of the requests that it got."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        calls: list[str] = []
        server.calls = calls  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", calls
        server.shutdown()


class Uploads:
    """A user with a program `wandb` that notes its calls."""

    def __init__(self, user: User, folder: Path) -> None:
        self.user, self.folder = user, folder
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "wandb"
        program.write_text(FAKE)
        program.chmod(0o755)
        user.environment |= {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HERE": str(folder), "WANDB_API_KEY": "k3y"}

    def run(self, *folders: str) -> str:
        """Run something that leaves offline runs of W&B."""
        made = "".join(
            f'mkdir -p "$WANDB_DIR/wandb/{each}"; : > "$WANDB_DIR/wandb/{each}/run-x.wandb"; ' for each in folders
        )
        done = self.user.quick("--json", "run", "--wait", "sh", "-c", f"{made}:")
        assert done.code == 0, done
        found: str = done.json["data"]["run"]["id"]
        return found

    def calls(self) -> list[str]:
        """Return the folders that the program was given, in order."""
        file = self.folder / "calls"
        lines = [line.split(" ", 2) for line in file.read_text().splitlines()] if file.exists() else []
        assert all(words[0] == "sync" and words[2] == "k3y no mode" for words in lines)
        return [words[1] for words in lines]


@pytest.fixture
def uploads(user: User, tmp_path: Path) -> Uploads:
    return Uploads(user, tmp_path / "wandb program")


def test_real_offline_run_that_is_refused(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # no login of the user who runs the tests
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    (user.project / "train.py").write_text(TRAIN)
    run = user.quick("--json", "run", "--wait", "--env", "none", sys.executable, "train.py", WANDB_MODE="offline")
    assert run.code == 0, run
    name = run.json["data"]["run"]["id"]
    assert user.quick("logs", name, "--out").out == "True\n"
    monkeypatch.setattr("shutil.which", lambda _name: None)  # the module of this Python counts
    copies = user.home / "data/wandb/copies" / name / "wandb"
    copies.mkdir(parents=True)
    with refusing() as (mine, asked), refusing() as (sites, told):
        (copies / "settings").write_text(f"[default]\nbase_url = {sites}\n")
        (copies / "__init__.py").write_text("raise SystemExit('imported')")
        user.environment |= {"WANDB_BASE_URL": mine, "WANDB_API_KEY": "k" * 40}
        failed = user.quick("wandb", "sync", "--json")
    assert failed.code == 5, failed
    (folder,) = failed.json["data"]["failed"]
    assert folder["run"] == name and folder["folder"].startswith("offline-run-") and folder["error"] == "no such user"
    assert "/graphql" in asked and not told, "the key goes to no server that the site names"
    monkeypatch.undo()
    monkeypatch.chdir(user.project)
    fake = Uploads(user, tmp_path / "fake")
    done = user.quick("wandb", "sync")
    assert (done.code, done.out) == (0, "1 synced, 0 skipped, 0 failed\n"), done
    assert fake.calls() == [folder["folder"]]
    fetched = user.quick("fetch", name)
    assert fetched.code == 0 and list(user.project.glob(f"results/{name}/wandb/offline-run-*/*.wandb"))


def test_each_folder_once(uploads: Uploads) -> None:
    first = uploads.run("offline-run-1", "offline-run-2")
    uploads.run()
    done = uploads.user.quick("wandb", "sync")
    assert (done.code, done.out) == (0, "2 synced, 0 skipped, 0 failed\n") and "synced /" in done.err
    uploads.run("offline-run-3")
    assert uploads.user.quick("wandb", "sync").out == "1 synced, 0 skipped, 0 failed\n"
    assert uploads.user.quick("wandb", "sync", first).out == "0 synced, 2 skipped, 0 failed\n"
    assert uploads.calls() == ["offline-run-1", "offline-run-2", "offline-run-3"]
    assert not list((uploads.user.home / "data/wandb/copies").iterdir())


def test_tasks_of_a_sweep(uploads: Uploads) -> None:
    script = 'mkdir -p "$WANDB_DIR/wandb/offline-run-{lr}"; : > "$WANDB_DIR/wandb/offline-run-{lr}/run-x.wandb"'
    assert uploads.user.quick("run", "--wait", "--grid", "lr=1,2,3", "sh", "-c", script).code == 0
    assert uploads.user.quick("wandb", "sync", "@last-sweep").out == "3 synced, 0 skipped, 0 failed\n"
    assert uploads.calls() == ["offline-run-1", "offline-run-2", "offline-run-3"]


def test_failure_is_tried_again(uploads: Uploads) -> None:
    run = uploads.run("offline-run-1", "offline-run-2")
    (uploads.folder / "fail").touch()
    failed = uploads.user.quick("wandb", "sync")
    assert (failed.code, failed.out) == (5, "0 synced, 0 skipped, 1 failed, 1 not tried\n")
    assert f"yurt: {run}: wandb sync offline-run-1 failed: it is broken" in failed.err
    (uploads.folder / "fail").unlink()
    assert uploads.user.quick("wandb", "sync", run).out == "2 synced, 0 skipped, 0 failed\n"


def test_refused_by_the_server(uploads: Uploads) -> None:
    """wandb ends with 0; it only marks what was uploaded."""
    run = uploads.run("offline-run-1")
    (uploads.folder / "refuse").touch()
    failed = uploads.user.quick("wandb", "sync")
    assert (failed.code, failed.out) == (5, "0 synced, 0 skipped, 1 failed\n")
    assert f"{run}: wandb sync offline-run-1 failed: no such user" in failed.err
    (uploads.folder / "refuse").unlink()
    assert uploads.user.quick("wandb", "sync").out == "1 synced, 0 skipped, 0 failed\n"


def test_again(uploads: Uploads) -> None:
    run = uploads.run("offline-run-1")
    for _time in range(2):
        assert uploads.user.quick("wandb", "sync", "--again").out == "1 synced, 0 skipped, 0 failed\n"
    assert uploads.user.quick("wandb", "sync", "--again", run).out == "1 synced, 0 skipped, 0 failed\n"
    assert uploads.user.quick("wandb", "sync", run).out == "0 synced, 1 skipped, 0 failed\n"
    assert uploads.calls() == ["offline-run-1"] * 3 and not (uploads.folder / "odd").read_text()


def test_what_a_site_adds_is_not_used(uploads: Uploads, tmp_path: Path) -> None:
    """Neither marks of wandb, nor settings, nor links to files of this machine."""
    private, there = tmp_path / "private", '"$WANDB_DIR/wandb/offline-run-1'
    private.write_text("private")
    script = f'mkdir -p {there}/files"; : > {there}/run-x.wandb"; : > {there}/run-x.wandb.synced"; '
    script += f'ln -s {private} {there}/files/stolen"; ln -s x {there}/files/inside"; '
    script += 'echo > "$WANDB_DIR/wandb/settings"'
    assert uploads.user.quick("run", "--wait", "sh", "-c", script).code == 0
    assert uploads.user.quick("wandb", "sync").out == "1 synced, 0 skipped, 0 failed\n"
    found = [Path(each).name for each in (uploads.folder / "odd").read_text().splitlines()]
    assert found == ["inside"]


INCOMPLETE = (
    'wandb: ERROR Failed to sync all data from "run-x.wandb": the file ends with an incomplete record. If the run is'
    " still running, retry after it finishes or use `wandb beta sync --live`."
)


@pytest.mark.parametrize(
    ("marked", "code", "printed", "why"),
    [
        (True, 0, "wandb: [p/x] Finished syncing offline-run-1", ""),
        (True, 1, "panic: runtime error", "panic: runtime error"),
        (False, 0, "wandb: ERROR no such user", "no such user"),
        (False, 0, "wandb: ERROR no such user\nwandb: something else", "no such user"),
        (False, 0, f"{INCOMPLETE}", ""),
        (False, 0, f"{INCOMPLETE}\nwandb: ERROR no such user", "no such user"),
        (False, 0, "Syncing: https://example.org/p/runs/x ... done.", ""),
        (False, 0, "wandb: ERROR Error while calling W&B API\ndone.", "Error while calling W&B API"),
        (False, 0, "wandb: Not authenticated.", "wandb: Not authenticated."),
        (False, 0, "", "wandb did not confirm the upload"),
        (False, 3, "", "exit code 3"),
    ],
)
def test_what_wandb_says(marked: bool, code: int, printed: str, why: str, tmp_path: Path) -> None:
    """The outputs of version 0.31, and `done.` of 0.29."""
    (tmp_path / "run-x.wandb").touch()
    if marked:
        (tmp_path / "run-x.wandb.synced").touch()
    assert wandb.problem(tmp_path, code, printed.encode().splitlines()) == why


def test_killed_between_folders_repeats_only_the_one_under_way(uploads: Uploads) -> None:
    folders = ["offline-run-1", "offline-run-2", "offline-run-3"]
    uploads.run(*folders)
    for each in folders:
        (uploads.folder / f"hold-{each}").touch()
    for each in folders:
        environment = {**os.environ, **uploads.user.environment}
        process = subprocess.Popen([YURT, "wandb", "sync"], env=environment, cwd=uploads.user.project)
        eventually((uploads.folder / f"held-{each}").exists)
        process.kill()
        process.wait()
        (uploads.folder / f"hold-{each}").unlink()
    assert uploads.user.quick("wandb", "sync").out == "1 synced, 2 skipped, 0 failed\n"
    assert uploads.calls() == [each for each in folders for _twice in range(2)]
    assert uploads.user.quick("wandb", "sync").out == "0 synced, 0 skipped, 0 failed\n"


def test_running_run_is_left_for_later(uploads: Uploads) -> None:
    script = f'mkdir -p "$WANDB_DIR/wandb/offline-run-1"; : > "$WANDB_DIR/wandb/offline-run-1/run-x.wandb"; {PATIENT}'
    run = uploads.user.quick("--json", "run", "sh", "-c", script).json["data"]["run"]
    eventually(lambda: uploads.user.quick("logs", run["id"]).out == "begun\n")
    done = uploads.user.quick("wandb", "sync", run["id"])
    assert (done.code, done.out) == (0, "0 synced, 0 skipped, 0 failed\n")
    assert done.err == f"1 run not finished yet: {run['id']}\n"
    (Path(run["folder"]) / "go").touch()
    uploads.user.quick("wait", run["id"])
    assert uploads.user.quick("wandb", "sync").out == "1 synced, 0 skipped, 0 failed\n"


def test_without_wandb(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb, "find_spec", lambda _name: None)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert said(user.quick("wandb", "sync"), 5) == "wandb is not installed"


def test_key_of_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.config.secrets.read", lambda name: b"from the keyring" if name == wandb.KEY else None)
    monkeypatch.delenv(wandb.KEY, raising=False)
    assert wandb.environment()[wandb.KEY] == "from the keyring"
    monkeypatch.setenv(wandb.KEY, "own")
    assert wandb.environment()[wandb.KEY] == "own"
