"""Intercepts the programs that yurt's scripts call on a login host (the steps), to pause or kill them; see step.sh."""

from __future__ import annotations

import os
import time
from pathlib import Path

from yurt.lab.cluster import Cluster

PROGRAMS = "cat chmod cp dd find git head id ln ls mkdir mktemp mv rm sbatch scancel squeue tar timeout touch uname wc"
LINE = "[ ! -d /tmp/campaign/bin ] || PATH=/tmp/campaign/bin:$PATH\n"


class Steps:
    """The steps of one login host."""

    def __init__(self, cluster: Cluster) -> None:
        self.root = Path(f"/proc/{cluster.pid(cluster.spec.login.name)}/root")
        self.folder = self.root / "tmp" / "campaign"
        self.bashrc = self.root / "home" / "alice" / ".bashrc"

    def install(self) -> None:
        """Put step.sh before the programs in alice's PATH, on this host only."""
        (self.folder / "bin").mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)
        script = self.folder / "bin" / "step.sh"
        script.write_text(Path(__file__).with_name("step.sh").read_text())
        script.chmod(0o755)
        for program in PROGRAMS.split():
            link = self.folder / "bin" / program
            if not link.is_symlink():
                link.symlink_to("step.sh")
        (self.folder / "sbatch.log").write_text("")
        (self.folder / "sbatch.log").chmod(0o666)
        text = self.bashrc.read_text()
        if LINE not in text:
            self.bashrc.write_text(LINE + text)

    def remove(self) -> None:
        self.disarm()
        self.bashrc.write_text(self.bashrc.read_text().replace(LINE, ""))

    def arm(self, count: int, when: str, what: str, *, program: str = "any", amount: float = 0) -> None:
        """Make the count-th step from now perform an action; see step.sh."""
        self.disarm()
        for name in ("go", "paused", "fired", "steps"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "steps").touch()
        (self.folder / "steps").chmod(0o666)
        aside = self.folder / "armed.new"
        aside.write_text(f"{count} {program} {when} {what} {amount}\n")
        aside.chmod(0o666)
        os.replace(aside, self.folder / "armed")

    def disarm(self) -> None:
        """Let all steps pass, including a paused one."""
        (self.folder / "armed").unlink(missing_ok=True)
        (self.folder / "go").touch()

    release = disarm

    def fired(self) -> bool:
        return (self.folder / "fired").exists()

    def wait_paused(self, seconds: float) -> bool:
        """Wait until the armed step is paused; return False after `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (self.folder / "paused").exists():
                return True
            time.sleep(0.01)
        return False

    def submissions(self) -> list[list[str]]:
        """Return a row for each call of sbatch and each return: called RUN | answered RUN CODE [JOB]."""
        return [line.split() for line in (self.folder / "sbatch.log").read_text().splitlines()]
