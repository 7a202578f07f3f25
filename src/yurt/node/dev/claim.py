"""The file `holder` in the backups folder: which dev node writes to it now, and that it is alive."""

import os
import time
import uuid
from typing import Any, Callable, Dict

from yurt.node import limits
from yurt.node.dev.config import Config
from yurt.node.files import NodeError, read_json, write_json

FILE = "holder"
BEATS = 2.5
"""After this many beats without a new one, a holder is dead."""


class Claim:
    """The right of this dev node to write versions. A claim of a dead one is taken over.

    Losing it costs no data: the engine then publishes what this node saves as a fork.
    """

    def __init__(self, config: Config, folder: str) -> None:
        self._config, self._folder = config, folder
        self._path = os.path.join(config.backups, FILE)
        self._token = uuid.uuid4().hex
        self._count, self._dropped = 0, False
        self.lost = ""
        """The node that took it over; empty while it is ours."""

    def take(self, stopped: Callable[[], bool], note: Callable[[str], None]) -> None:
        """Wait until no other holder is alive, then write the claim. Raises NodeError if another one is alive.

        The caller has locked the folder of the dev node, so a claim from the same folder is of a dead process.
        """
        began, first = time.monotonic(), read_json(self._path)
        patience = BEATS * self._config.beat
        while not stopped():
            found = read_json(self._path)
            if not found or self._is_dead(found):
                break
            if found.get("beat") != first.get("beat") and found.get("token") == first.get("token"):
                raise NodeError(
                    "the dev node %s runs on %s (run %s); stop it with `yurt dev down`, or use another name"
                    % (self._config.name, found.get("node"), found.get("run"))
                )
            if found.get("token") != first.get("token"):
                began, first = time.monotonic(), found
            waited = time.monotonic() - began
            if waited > patience:
                break
            note("waiting for the dev node on %s to stop (%d s at most)" % (found.get("node"), patience - waited))
            time.sleep(min(1.0, self._config.beat / 4))
        self._write()

    def beat(self) -> None:
        """Say that this holder is alive, unless another one took over. Raises OSError if the disk cannot be used."""
        if self.lost or self._dropped:
            return
        found = read_json(self._path)
        if found and found.get("token") != self._token:
            self.lost = str(found.get("node") or "another node")
            return
        self._write()

    def drop(self) -> None:
        """End the claim, if it is still ours, for good."""
        self._dropped = True
        if read_json(self._path).get("token") == self._token:
            try:
                os.unlink(self._path)
            except OSError:
                pass

    def _write(self) -> None:
        self._count += 1
        config = self._config
        about = {"run": config.run, "job": config.job, "cluster": config.cluster, "node": os.uname().nodename}
        about.update(name=config.name, run_folder=config.run_folder, folder=self._folder, token=self._token)
        write_json(self._path, dict(about, beat=self._count))

    def _is_dead(self, found: Dict[str, Any]) -> bool:
        if found.get("node") == os.uname().nodename and found.get("folder") == self._folder:
            return True
        if self._config.run and found.get("run") == self._config.run:
            return True  # an earlier start of this run, which was fenced
        job = str(found.get("job") or "")
        same = bool(self._config.job) and found.get("cluster") == self._config.cluster
        return same and bool(job) and job != self._config.job and limits.has_ended(job)
