"""The homes of a campaign on the lab: a laptop and two clusters, its yurt commands, and the processes of a sync."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.campaign.client import PATIENCE, YURT, Client
from tests.campaign.home_judge import State, look
from tests.campaign.home_trees import Editor, Place
from yurt.lab import Lab
from yurt.lab.relay import Rules

SITES = ("alpha", "beta")


class Answer(NamedTuple):
    """What a yurt command returned."""

    code: int
    data: Any
    text: str


class HomeSite:
    """One star of homes: the laptop and the login hosts of alpha and beta, with one of them as the hub."""

    def __init__(
        self,
        lab: Lab,
        hub: str,
        folder: Path,
        runtime: Path,
        log: Callable[[str], None],
        *,
        seed: object,
        known: set[str],
    ) -> None:
        self.lab, self.hub, self.log = lab, hub, log
        self.wrong: list[str] = []
        word = f"homes-{hub}-{os.urandom(3).hex()}"
        work = folder / word
        project = work / "project"
        project.mkdir(parents=True)
        self.client = Client(hub, data=work / "data", runtime=runtime / hub, project=project, log=log)
        config = work / "config"
        source = Path(os.environ["YURT_CONFIG_HOME"])
        subprocess.run(["cp", "-r", str(source), str(config)], check=True)
        self.unison = work / "unison"
        self.environment = {
            **self.client.environment,
            "YURT_CONFIG_HOME": str(config),
            "UNISON": str(self.unison),
            "YURT_CLOCKS": "rest=0 silent=4",
        }
        sites = {name: {"root": word, "address": name} for name in SITES}
        homes = {
            "hub": hub,
            "folder": str(work / "home"),
            "places": sites if hub == "local" else {**sites, "local": {}},
        }
        (config / "homes.yaml").write_text(json.dumps(homes))
        (config / "homes.yaml").chmod(0o600)
        self.roots = {
            name: Path(f"/proc/{lab.cluster(name).pid(lab.cluster(name).spec.login.name)}/root") for name in SITES
        }
        self.places = [self._place("local", work / "home", self.unison, (os.getuid(), os.getgid()))]
        for name in SITES:
            home = self.roots[name] / "home" / "alice"
            owner = home.stat()
            self.places.append(self._place(name, home / word, home / ".unison", (owner.st_uid, owner.st_gid)))
        self.editor = Editor(self.places, Random(f"{seed}/{hub}"), known)
        self.namespaces = {os.readlink(root.parent / "ns" / "pid"): name for name, root in self.roots.items()}
        self._files: dict[int, tuple[Path, Path]] = {}
        self._number = 0

    def _place(self, name: str, root: Path, unison: Path, owner: tuple[int, int]) -> Place:
        root.mkdir(mode=0o755)
        os.chown(root, *owner)
        return Place(name, root, unison, owner)

    def state(self) -> State:
        return look(self.places)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a yurt command. It prints to files: children of a killed yurt would keep a pipe open."""
        self._number += 1
        files = tuple(self.client.project / f"{self._number}.{name}" for name in ("out", "err"))
        with files[0].open("wb") as out, files[1].open("wb") as err:
            process = subprocess.Popen(
                [YURT, "--json", *words],
                cwd=self.client.project,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._files[process.pid] = (files[0], files[1])
        return process

    def end(self, process: subprocess.Popen[bytes]) -> Answer:
        """Wait for a yurt command."""
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.wrong.append(f"yurt home did not end within {PATIENCE:.0f} s")
        out, err = (each.read_text(errors="replace") for each in self._files.pop(process.pid))
        data = None
        with suppress(ValueError):
            data = json.loads(out).get("data")
        code = process.returncode
        self.log(f"exit code {code}: {out[:1500]} {err[:500]}".replace("\n", " "))
        if code not in (0, 1, 4, 5, -signal.SIGKILL) or "Traceback" in out + err:
            self.wrong.append(f"yurt ended with exit code {code}: {(out + err)[:300]}")
        return Answer(code, data, out + err)

    def call(self, *words: str) -> Answer:
        return self.end(self.start(*words))

    def sync(self) -> Answer:
        return self.call("home", "sync", "--yes")

    # Processes

    def unisons(self) -> dict[str, int]:
        """Return the process ids of the Unisons of this star, by place."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                if (entry / "comm").read_text() != "unison\n":
                    continue
                variables = (entry / "environ").read_bytes().split(b"\0")
                site = self.namespaces.get(os.readlink(entry / "ns" / "pid"))
                if site and any(each.startswith(b"YURT_HOME_SYNC=") for each in variables):
                    found[site] = int(entry.name)
                elif f"UNISON={self.unison}".encode() in variables:
                    found["local"] = int(entry.name)
        return found

    def kill_unison(self, *names: str) -> int:
        """Kill Unison on some places; return how many there were."""
        found = [pid for name, pid in self.unisons().items() if name in names]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(found)

    def quiet(self) -> None:
        """Wait until no Unison of this star runs on this machine; those on the sites are replaced by the next sync."""
        deadline = time.monotonic() + 30
        while "local" in self.unisons() and time.monotonic() < deadline:
            time.sleep(0.05)

    def slow(self, name: str, rules: Rules | None) -> None:
        """Set the rules of new connections to a login host."""
        self.lab.faults.delay(name, rules or Rules())

    def mend(self) -> None:
        """Undo the faults of the links."""
        for name in SITES:
            self.slow(name, None)

    def close(self) -> None:
        """End the connections."""
        self.client.disconnect()
        for name in SITES:
            self.lab.faults.heal(name)
