"""The programs that `yurt serve` knows, and the configuration of a service: what its job runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from yurt.errors import UserError
from yurt.node.service.programs import PORT, SOCKET

TITLES = {"jupyter": "JupyterLab", "tensorboard": "TensorBoard", "mlflow": "MLflow"}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_INTERPRETER = re.compile(r"python[0-9.]*|(ba|z|da)?sh|env|exec|node|Rscript|julia")

COMMAND = "command"
"""The program of a service that runs a command of the user."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a service runs."""

    program: str
    words: Sequence[str] = ()
    """The command, if it is one of the user."""
    folder: str = ""
    """For Jupyter: where it starts. For TensorBoard: the folder with event files. For MLflow: its store."""
    links: dict[str, str] = {}
    """For TensorBoard: folders of runs, by the names that it shows."""
    open_port: bool = False
    """Whether a port that every user of the node can reach is accepted."""

    @property
    def title(self) -> str:
        return TITLES.get(self.program, "the service")


def name(wanted: Wanted) -> str:
    """Return the name of a service that the user has not named: its program, or the script that it runs."""
    if wanted.program != COMMAND:
        return wanted.program
    words = [word.rpartition("/")[2] for word in wanted.words if not word.startswith("-")]
    first = next((word for word in words if not _INTERPRETER.fullmatch(word)), "")
    found = re.sub(r"[^A-Za-z0-9._-]", "", first.removesuffix(".py").removesuffix(".sh"))
    return found.lstrip("._-")[:40] or COMMAND


def check_name(text: str) -> None:
    """UserError if a name of a service cannot be part of a path, or looks like an option."""
    if _NAME.fullmatch(text) is None:
        raise UserError(
            f"'{text}' is not a valid name of a service: it may have up to 40 letters, digits, dots, _ and -,"
            " and starts with a letter or a digit",
            code="usage",
            hint="for example: `--name paper`",
        )


def check(words: Sequence[str]) -> None:
    """UserError unless a command says where it listens."""
    if not words or not words[0].strip():
        raise UserError("the command is empty", code="usage", hint="for example: `yurt serve -- app --port {port}`")
    port, socket = (any(each in word for word in words) for each in (PORT, SOCKET))
    if port and socket:
        raise UserError(
            "the command contains both {port} and {socket}",
            code="usage",
            hint="use one of them: {socket} if the program can listen on a unix socket",
        )
    if not port and not socket:
        raise UserError(
            "the command must say where to listen: with {port}, or with {socket} for a unix socket",
            code="usage",
            hint="for example: `yurt serve -- python -m http.server {port}`",
        )


def configuration(wanted: Wanted) -> dict[str, Any]:
    """Return the value of YURT_SERVICE."""
    return {
        "program": wanted.program,
        "words": list(wanted.words),
        "folder": wanted.folder,
        "links": wanted.links,
        "open": wanted.open_port,
    }
