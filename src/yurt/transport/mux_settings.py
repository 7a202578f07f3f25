"""Which of the user's ssh settings apply to a session on an open connection, and whether yurt may open it by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

USUAL = {
    "forwardx11": ("no", ""),
    "remotecommand": ("none", ""),
    "sessiontype": ("default", ""),
    "stdinnull": ("no", ""),
    "forkafterauthentication": ("no", ""),
}
"""Settings that change a session, with the values with which they do not."""


class MuxSettings:
    """The settings of a session: whether the agent is forwarded, and which variables are sent."""

    def __init__(self, agent: bool, send: Sequence[str], given: Sequence[str]) -> None:
        self.agent, self.send, self.given = agent, list(send), list(given)

    def variables(self, environment: Mapping[str, str]) -> Iterator[str]:
        """Yield the variables that ssh would send, as NAME=VALUE."""
        if self.send:
            from fnmatch import fnmatchcase

            for name, value in environment.items():
                if any(fnmatchcase(name, pattern) for pattern in self.send):
                    yield f"{name}={value}"
        yield from self.given

    def text(self) -> str:
        """Return the settings as lines of a file."""
        lines = [f"agent {'yes' if self.agent else 'no'}", *(f"send {each}" for each in self.send)]
        return "".join(f"{line}\n" for line in [*lines, *(f"set {each}" for each in self.given)])


def parse(text: str) -> MuxSettings:
    """Return the settings in a file."""
    rows = [line.partition(" ")[::2] for line in text.splitlines()]
    return MuxSettings(
        ("agent", "yes") in rows,
        [value for key, value in rows if key == "send"],
        [value for key, value in rows if key == "set"],
    )


def of_session(rows: Sequence[tuple[str, str]]) -> MuxSettings | None:
    """Return the settings from the output of `ssh -G`; None if a session needs the ssh program."""
    for key, value in rows:
        if value not in USUAL.get(key, (value,)):
            return None
    agents = [value for key, value in rows if key == "forwardagent"]
    if any(each not in ("yes", "no") for each in agents):
        return None
    sent = [pattern for key, value in rows if key == "sendenv" for pattern in value.split()]
    return MuxSettings("yes" in agents, sent, [value for key, value in rows if key == "setenv"])
