"""Commands inside a pod of the backend `Pods`. There is no ssh."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from yurt.backends.answers import Asked, LostStart, Want
from yurt.errors import RefusedError
from yurt.model import layout
from yurt.model.growth import EVENTS, MLRUNS, OVERLAP, Growing, Kind, Reader
from yurt.model.run import Placement
from yurt.model.site_words import NodeName
from yurt.testing.pod import Pod


def grow(disks: Sequence[Path | None], growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
    """Pass the new bytes of files on the disks of pods to `reader`."""
    for at, (disk, each) in enumerate(zip(disks, growing, strict=True)):
        known = {one.path: one for one in each.known}
        for file in _files(disk, kinds) if disk is not None else ():
            path, about = str(file.relative_to(disk or file)), file.stat()
            seen, copy = f"{about.st_size}:{about.st_mtime_ns}", known.get(path)
            if copy is not None and copy.seen == seen:
                continue
            start = max(0, copy.size - OVERLAP) if copy is not None and about.st_size >= copy.size else 0
            reader.begin(at, path, seen, start)
            reader.more(file.read_bytes()[start:])
            reader.end()


def _files(disk: Path, kinds: Sequence[Kind]) -> Iterator[Path]:
    if "metrics" in kinds:
        yield from sorted(disk.glob("metrics*.jsonl"))
    for file in sorted(each for each in disk.rglob("*") if each.is_file()):
        mlflow = file.is_relative_to(disk / layout.OUTPUTS / MLRUNS) and "artifacts" not in file.parts
        if ("events" in kinds and EVENTS in file.name) or ("mlflow" in kinds and mlflow):
            yield file
    if (disk / layout.EXIT).exists():
        yield disk / layout.EXIT


class PodClaims:
    """The folders of claims, by path: who holds which item."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[str, dict[int, str]] = {}

    def open(self, folder: str) -> None:
        with self._lock:
            self._folders.setdefault(folder, {})

    def claim(self, folder: str, item: int, candidate: str) -> str:
        with self._lock:
            return self._folders[folder].setdefault(item, candidate) if folder in self._folders else ""

    def holders(self, folder: str) -> dict[int, str]:
        with self._lock:
            return dict(self._folders[folder])

    def end(self, folder: str, item: int, who: str) -> str:
        del who
        with self._lock:
            return self._folders[folder].pop(item, "")

    def give_up(self, folder: str, item: int, candidate: str, who: str) -> bool:
        del who
        with self._lock:
            held = self._folders[folder].get(item) == candidate
            if held:
                del self._folders[folder][item]
            return held

    def end_lost(self, folder: str, start: int, lease: int) -> LostStart:
        raise RefusedError(f"pods: start {start} of {folder} has no lease of {lease} s", code="site-refused")

    def close(self, folder: str) -> None:
        with self._lock:
            self._folders.pop(folder, None)

    def wants(self, folders: Sequence[str]) -> list[Want]:
        del folders
        return []

    def answer(self, answers: Sequence[tuple[str, str, str]]) -> None:
        del answers

    def make_key(self, folder: str) -> str:
        raise RefusedError(f"pods: no keys in {folder}", code="site-refused")

    def add_keys(self, folder: str, keys: Sequence[str], until: float) -> str:
        raise RefusedError(f"pods: no {len(keys)} keys in {folder} until {until}", code="site-refused")

    def know_host(self, folder: str, lines: str) -> None:
        raise RefusedError(f"pods: no {len(lines)} host keys in {folder}", code="site-refused")

    def reaches(self, words: Sequence[str]) -> str:
        return f"pods: no {words[0]}"


class PodExec:
    """Runs commands as processes on the disk of a pod."""

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self._pods = pods

    def run(self, placement: Placement, words: Sequence[str], *, terminal: bool) -> int:
        del terminal
        pod = self._pods[placement.folder]
        done = subprocess.run(
            list(words) or ["sh"], cwd=pod.disk / "work", env=pod.environment, stdout=subprocess.PIPE, check=False
        )
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.buffer.flush()
        return done.returncode

    def ask(
        self,
        placement: Placement,
        words: Sequence[str],
        *,
        on_line: Callable[[bytes], None] = lambda _line: None,
        silence: float = 60,
    ) -> Asked:
        if placement.folder not in self._pods:
            raise RefusedError("pods: the run is not running", code="run-not-running")
        done = subprocess.run(list(words), stdin=subprocess.DEVNULL, capture_output=True, timeout=silence, check=False)
        for line in done.stdout.splitlines():
            on_line(line)
        return Asked(done.returncode, done.stdout, done.stderr)

    def relay(self, placement: Placement, command: str) -> list[str]:
        del placement
        return ["sh", "-c", command]

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        del known_hosts, command, prompt, share
        raise RefusedError(f"pods: {node} does not accept ssh", code="site-refused")

    def direct(self, script: str, *arguments: str) -> list[str]:
        del script, arguments
        raise RefusedError("pods: there is no login host", code="site-refused")
