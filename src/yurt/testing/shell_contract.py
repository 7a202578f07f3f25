"""The contract of contexts with sh and a disk that their jobs share."""

from __future__ import annotations

import time

import pytest

from yurt.backends.base import Backend
from yurt.backends.shell.backend import ShellBackend
from yurt.model.run import Plan, Status
from yurt.model.state import next_status
from yurt.testing.contract import BackendContract
from yurt.testing.runs import PATIENT, Planner, follow, observe, read, submit
from yurt.testing.waiting import eventually
from yurt.transport.base import Host


class ShellContract(BackendContract):
    """The contract of contexts with sh and a disk that their jobs share."""

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, backend: Backend) -> Host:
        assert isinstance(backend, ShellBackend)
        return backend.host

    def test_paths_are_those_of_the_run_folder(self, backend: Backend, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, _status = ended["environment"]
        assert f"YURT_RUN_DIR={made.run.folder}" in read(backend, made, "outputs/env").split("\0")

    def test_modes_of_files(self, backend: Backend, host: Host, ended: dict[str, tuple[Plan, Status]]) -> None:
        """The user's files get the user's umask; yurt's files are private."""
        made, status = ended["files"]
        assert status.state == "completed", read(backend, made, "err.log")
        usual = host.run("umask").text.strip()
        assert int(read(backend, made, "outputs/umask"), 8) == int(usual, 8)
        script = 'cd "$1" && find . -maxdepth 1 ! -type l -printf "%m %P\\n"; stat -c "%a new" checkpoints/new'
        lines = [line.partition(" ") for line in host.run(script, made.run.folder).text.splitlines()]
        modes = {name: int(mode, 8) for mode, _, name in lines}
        theirs = {"own": 0o644, "new": 0o755}
        assert {name: modes.pop(name) for name in theirs} == theirs
        for name in ("work", "outputs", "checkpoints"):
            modes.pop(name, None)
        assert {name: mode & 0o077 for name, mode in modes.items()} == dict.fromkeys(modes, 0)
        assert {"", "job.sh", "data", "run.json", "exit.json", "winner", "gen.1", "out.log", "err.log"} <= set(modes)

    def test_a_job_that_starts_though_its_run_was_cancelled(
        self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]
    ) -> None:
        """After a lost scancel, the gate keeps the job from starting the command."""
        made = plan("sh", "-c", 'echo started >> "$YURT_RUN_DIR/ledger"')
        clean.append(made)
        submit(backend, made)
        assert follow(backend, made).state == "completed"
        late = 'cd "$1" && rm -f gen.* end.* exit.json ledger winner && echo cancelled > winner && sh job.sh late'
        done = host.run(f"{late}; ls gen.1 ledger 2> /dev/null; cat winner", made.run.folder)
        assert done.text == "cancelled\n"

    def test_job_sh_by_hand(self, host: Host, ended: dict[str, tuple[Plan, Status]]) -> None:
        made, _status = ended["streams"]
        before = listing(host, made)
        done = host.run('cd / && sh "$1/job.sh" < /dev/null', made.run.folder)
        assert (done.code, done.out, done.err) == (0, b"one\nthree", b"two\nfour")
        assert listing(host, made) == before
        assert host.run('sh "$1/job.sh"', ended["code"][0].run.folder).code == 42
        there = host.run('sh "$1/job.sh"; cat "$1/outputs/env"', ended["environment"][0].run.folder).text
        assert "YURT_RESTARTS=0" in there.split("\0")

    def test_a_run_whose_folder_is_gone(self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]) -> None:
        """It must not start a second time: it may have run already."""
        made, other = plan("sh", "-c", PATIENT), plan("true")
        clean += [made, other]
        for each in (made, other):
            submit(backend, each)
        eventually(lambda: read(backend, made, "out.log"))
        eventually(lambda: observe(backend, made).live == "running")
        queued = Status(state="queued", submitted=time.time(), attempts=1)
        status = next_status(queued, observe(backend, made), time.time())
        host.run(': > "$1/go"; until [ -e "$1/exit.json" ]; do sleep 0.1; done', made.run.folder)
        host.run('rm -rf -- "$1"', made.run.folder)
        eventually(lambda: observe(backend, made).live is None)
        for late in (0, 5, 15, 70, 140):
            status = next_status(status, observe(backend, made), time.time() + late)
            assert status.state != "waiting", status
        assert status.state == "completed" or (status.state == "lost" and "its run folder is gone" in status.reason)
        assert follow(backend, other).state == "completed", "the other run must not be affected"

    def test_a_run_that_removes_its_folder(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        """Its job ends; it does not wait for the folder as for a full disk."""
        made = plan("sh", "-c", 'rm -rf -- "$YURT_RUN_DIR"')
        clean.append(made)
        submit(backend, made)
        eventually(lambda: (seen := observe(backend, made)).gone and seen.live is None)


def listing(host: Host, plan: Plan) -> str:
    """Return every file of a run folder, except links to the code, with its mode, checksum and modification time."""
    script = (
        'cd "$1" && find . -type f -exec stat -c "%a %Y %n" {} + | sort -k 3 && find . -type f -exec cksum {} + | sort'
    )
    return host.run(script, plan.run.folder).text
