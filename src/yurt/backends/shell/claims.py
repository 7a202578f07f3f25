"""The claims of races: who may start, decided in a folder on the disk of one site."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence

from yurt.backends import scripts
from yurt.backends.answers import LostStart, Want
from yurt.backends.job import script
from yurt.backends.shell import ownership
from yurt.model.site_words import whole
from yurt.transport.base import Answer, Host, refusal

CHECKED = "yurt-race check"
"""What the arbiter answers to `check`."""


class ShellClaims:
    """The claims of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def open(self, folder: str) -> None:
        self._run([folder], "open_race", folder, make=True)

    def claim(self, folder: str, item: int, candidate: str) -> str:
        return self._run(
            [folder], 'cd "$1" && me=$4 && claim "$2" "$3"; :', folder, str(item), candidate, _me(), own=True
        )

    def holders(self, folder: str) -> dict[int, str]:
        text = self._run([folder], "holders", folder)
        with self._host.reading():
            return read_holders(text)

    def end(self, folder: str, item: int, who: str) -> str:
        return self._run([folder], 'me=$4 && end_claim "$1" "$2" "$3"; :', folder, str(item), who, _me(), own=True)

    def give_up(self, folder: str, item: int, candidate: str, who: str) -> bool:
        words = (folder, str(item), candidate, who, _me())
        return bool(self._run([folder], 'me=$5 && give_up "$1" "$2" "$3" "$4"; :', *words, own=True))

    def end_lost(self, folder: str, start: int, lease: int) -> LostStart:
        answer = self._run(
            [folder], 'me=$4 && end_lost "$1" "$2" "$3"; :', folder, str(start), str(lease), _me(), own=True
        )
        return "over" if answer == "over" else "keeps" if answer == "keeps" else "wait"

    def wants(self, folders: Sequence[str]) -> list[Want]:
        if not folders:
            self._host.run(":")
            return []
        lines = self._run(folders, "wants", *folders).splitlines()
        found = [line.split(" ") for line in lines]
        with self._host.reading():
            return [
                Want(whole(parts[0]), None if parts[1] == "-" else whole(parts[1]), parts[2], whole(parts[3]), parts[4])
                for parts in found
                if len(parts) == 5
            ]

    def answer(self, answers: Sequence[tuple[str, str, str]]) -> None:
        lines = "".join(f"{folder}|{word}|{holder}\n" for folder, word, holder in answers)
        folders = [folder for folder, _word, _holder in answers]
        self._run(folders, f"me={_me()}; answer", stdin=lines.encode())

    def make_key(self, folder: str) -> str:
        return self._run([folder], "make_key", folder, make=True)

    def add_keys(self, folder: str, keys: Sequence[str], until: float) -> str:
        content = script.arbiter(folder).encode()
        command = f"sh {shlex.quote(f'{folder}/arbiter.sh')}".replace("\\", "\\\\").replace('"', '\\"')
        expiry = time.strftime("%Y%m%d%H%M", time.localtime(until))
        options = f'restrict,command="{command}",expiry-time="{expiry}"'
        stdin = content + "".join(f"{key}\n" for key in keys).encode()
        return self._run([folder], "add_keys", folder, options, str(len(content)), stdin=stdin)

    def know_host(self, folder: str, lines: str) -> None:
        self._run([folder], 'cat > "$1/known_hosts"; :', folder, own=True, stdin=lines.encode())

    def reaches(self, words: Sequence[str]) -> str:
        answer = self._host.run('timeout 30 "$@" < /dev/null', *words, "check", timeout=45)
        if CHECKED in answer.text:
            return ""
        return answer.errors.splitlines()[-1] if answer.errors else "no answer"

    def close(self, folder: str) -> None:
        self._run([folder], "close_race", folder)

    def _run(
        self, folders: Sequence[str], what: str, *words: str, make: bool = False, own: bool = False, stdin: bytes = b""
    ) -> str:
        """Run a function of claims.sh; `own`: `what` is a script that takes the words itself."""
        text = script.claimer() + scripts.text("claims.sh") + (what if own else f'{what} "$@"')
        answer: Answer = ownership.run(self._host, folders, text, *words, make=make, stdin=stdin)
        if answer.code:
            raise refusal(self._host.name, "cannot use the claims of a race", answer.errors)
        return answer.text.strip()


def read_holders(text: str) -> dict[int, str]:
    """Return the holder of each item, from lines ITEM.ROUND HOLDER and ITEM.ROUND.dead WHO."""
    held: dict[int, dict[int, str]] = {}
    dead: set[tuple[int, int]] = set()
    for line in text.splitlines():
        name, _, who = line.partition(" ")
        parts = name.split(".")
        if len(parts) == 3 and parts[2] == "dead":
            dead.add((int(parts[0]), int(parts[1])))
        elif len(parts) == 2:
            held.setdefault(int(parts[0]), {})[int(parts[1])] = who
    alive: Mapping[int, list[str]] = {
        item: [who for number, who in sorted(rounds.items()) if (item, number) not in dead]
        for item, rounds in held.items()
    }
    return {item: names[0] for item, names in alive.items() if names}


def _me() -> str:
    return f"yurt.{os.urandom(4).hex()}"
