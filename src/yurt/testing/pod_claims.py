"""The claims of races in memory, for the contract of backends without a shell."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from yurt.backends.answers import LostStart, Want
from yurt.errors import RefusedError


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
