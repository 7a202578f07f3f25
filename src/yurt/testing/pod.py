"""A pod, a run of the backend of pods: one process with its own disk, which is removed with it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from yurt.backends.job import script, variables
from yurt.model.run import Plan
from yurt.model.state import Ending

NODE = "127.0.0.1"


class Pod:
    """One process and its disk."""

    def __init__(self, plan: Plan, job: str, code: bytes) -> None:
        self.plan, self.job = plan, job
        self.disk = Path(tempfile.mkdtemp(prefix="yurt-pod-"))
        self.started = time.time()
        self.cause = ""
        for name in ("work", "outputs", "checkpoints"):
            (self.disk / name).mkdir()
        (self.disk / "params.json").write_bytes(script.params(plan))
        (self.disk / "run.json").write_bytes(msgspec.json.encode(plan.run))
        (self.disk / "plan.json").write_bytes(msgspec.json.encode(plan))
        if code:
            with tarfile.open(fileobj=io.BytesIO(code)) as archive:
                archive.extractall(self.disk / "work", filter="data")
        self.environment = {**os.environb, **{os.fsencode(name): value for name, value in self._variables().items()}}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = threading.Event()

    def _variables(self) -> dict[str, bytes]:
        """Return the variables of the plan, with paths on this disk."""
        there, here = os.fsencode(self.plan.run.folder), os.fsencode(self.disk)
        found = {name: value.replace(there, here) for name, value in variables.variables_of(self.plan).items()}
        return {**found, **self.plan.variables, "YURT_RESTARTS": b"0"}

    def _run(self) -> None:
        with (self.disk / "out.log").open("wb") as out, (self.disk / "err.log").open("wb") as err:
            try:
                self.process = subprocess.Popen(
                    self.plan.words,
                    cwd=self.disk / "work" / self.plan.run.subfolder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except OSError as error:
                err.write(f"{os.fsdecode(self.plan.words[0])}: {error.strerror}\n".encode())
                err.flush()
                self._end(127)
                return
            finally:
                self.ready.set()
            try:
                self.process.wait(self.plan.limit)
            except subprocess.TimeoutExpired:
                self.cause = "timeout"
                self.stop()
                self.process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # processes that the command left behind
        self._end(self.process.returncode)

    def _end(self, code: int) -> None:
        ending = Ending(
            code=code if code >= 0 else 128 - code,
            signal=max(0, -code),
            cause=self.cause if code else "",
            started=self.started,
            ended=time.time(),
            seconds=time.time() - self.started,
            node=NODE,
            job=self.job,
        )
        (self.disk / "exit.new").write_bytes(msgspec.json.encode(ending))
        (self.disk / "exit.new").rename(self.disk / "exit.json")

    def stop(self) -> None:
        """Send TERM to the command; kill it after the grace period."""
        self.ready.wait()
        if self.process is None:
            return
        for number, seconds in ((signal.SIGTERM, self.plan.grace), (signal.SIGKILL, 10)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return

    @property
    def ended(self) -> bool:
        return (self.disk / "exit.json").exists()
