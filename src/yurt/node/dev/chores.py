"""What a dev node does beside backups, in a thread of its own as disks and Slurm may be slow to answer."""

import os
import threading
import time
from typing import Callable, List, Optional

from yurt.node import backup, limits
from yurt.node.dev import disk
from yurt.node.dev.claim import Claim
from yurt.node.dev.config import Config
from yurt.node.dev.idle import Idle
from yurt.node.dev.schedule import Schedule
from yurt.node.dev.status import Status
from yurt.node.dev.worker import shield
from yurt.node.files import write

DISK = 300.0
SAMPLE = 60.0
PAUSE = 0.5


class Chores:
    """Beats, reads the time limit, samples the use of the node, looks at the disk of the backups."""

    def __init__(self, config: Config, folder: str, schedule: Schedule, status: Status, claim: Claim) -> None:
        self._config, self._folder, self._schedule, self._status, self._claim = config, folder, schedule, status, claim
        self._born = time.time()
        self._looking = threading.Lock()
        self.idle = Idle(self._born)
        self.notes: List[str] = []
        """Warnings that stay: on the folder of the workspace, on ssh."""

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def look(self) -> Optional[float]:
        """Read the time limit now; return when the job ends, None if it has no limit. `end` holds it for prompts."""
        with self._looking:
            end: Optional[float] = self._status.get("end")
            if self._config.job:
                try:
                    left = limits.time_left(self._config.job)
                    end = None if left is None else time.time() + left
                except limits.Unknown:  # keep what was read before
                    if end is None and self._config.limit_seconds is not None:
                        end = self._born + self._config.limit_seconds
            elif self._config.limit_seconds is not None:
                end = self._born + self._config.limit_seconds
            before = self._status.get("end")
            if end is not None and before is not None and abs(end - before) < 5:
                end = before  # squeue counts in whole seconds
            self._schedule.looked(time.time(), end)
            self._status.set(end=end)
            if self._status.get("next") is not None:
                self._status.set(next=self._schedule.shown_next(time.time()))
            try:
                if end is not None:
                    write(os.path.join(self._folder, "end"), "%d\n" % end)
                elif os.path.exists(os.path.join(self._folder, "end")):
                    os.unlink(os.path.join(self._folder, "end"))
            except OSError:
                pass  # the node's disk is full: prompts show an old time
            return end

    def _run(self) -> None:
        shield()
        sample = min(SAMPLE, self._config.idle / 4)
        dues = {self._beat: self._config.beat, self._sample: sample, self._see_disk: DISK}
        at = {each: time.monotonic() + pause for each, pause in dues.items()}
        at[self._see_disk] = 0.0
        while True:
            if time.time() >= self._schedule.next_look():
                self.look()
            for each, pause in dues.items():
                if time.monotonic() >= at[each]:
                    self._try(each)
                    at[each] = time.monotonic() + pause
            time.sleep(min(PAUSE, sample, self._config.beat / 2))

    def _try(self, chore: Callable[[], None]) -> None:
        try:
            chore()
        except (OSError, ValueError, backup.BackupError) as error:
            print("yurt: %s" % error, flush=True)

    def _beat(self) -> None:
        self._claim.beat()
        self._status.write()  # its readers see that the node is alive
        if self._claim.lost and not self._status.get("fork"):
            text = "the dev node on %s took over this workspace; backups of this node are forks" % self._claim.lost
            self._status.set(fork=text)
            print(text, flush=True)

    def _sample(self) -> None:
        self.idle.sample(time.time())

    def _see_disk(self) -> None:
        held = backup.held_size(self._config.backups) if self._config.limit else 0
        self._status.set(warnings=self.notes + disk.warnings(self._config.backups, held, self._config.limit))
