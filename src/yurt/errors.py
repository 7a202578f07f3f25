"""The errors that yurt raises: whose fault an error is, and what the user can do next.

Nothing in this module prints or exits; `yurt.cli.main` turns an error into a message and an exit code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

Fault = Literal["user", "site", "transient", "bug"]
Consent = Literal["address", "build", "file", "write"]
"""What a project may do only after its user has agreed: use an address, run code of a package here, upload a file, or
lead to a folder elsewhere that yurt writes to."""

CODES: dict[str, str] = {
    "usage": "The command line, or an argument of a Python function, is invalid.",
    "race-unreachable": "A cluster of a race does not reach the one that decides it.",
    "race-open": "No candidate of a race has started yet.",
    "race-over": "A race is over.",
    "race-reachable": "The site of the winner of a race responds.",
    "busy": "Another yurt command is busy with the same run.",
    "config-invalid": "A configuration file is invalid.",
    "spec-failed": "A spec file raised an error or defined no experiments.",
    "config-unsafe": "Another user can change a configuration file, or yurt's own folder.",
    "config-unwritable": "A configuration file, or yurt's own folder, cannot be written.",
    "context-exists": "A context with this name already exists; yurt did not change it.",
    "context-changed": "Another process changed the context during the edit.",
    "context-unsupported": "yurt does not support the type of the context yet.",
    "context-built-in": "The context `local` is built in and cannot be removed.",
    "not-confirmed": "The operation needs your confirmation; nothing was changed.",
    "editor-failed": "The editor did not start or exited with an error.",
    "not-found": "The named run, context, host or file does not exist.",
    "connection-lost": "The connection was lost before the output was complete. Safe to retry.",
    "login-shell": "The login shell of the site ended, and the command printed nothing. Safe to retry.",
    "timed-out": "The site did not respond in time. Safe to retry.",
    "not-responding": "The site did not respond in the last minute, so yurt does not wait for it. Safe to retry.",
    "mlflow-unreachable": "The MLflow server cannot be reached. Safe to retry.",
    "mlflow-refused": "MLflow rejected the operation; the message includes the reason.",
    "program-missing": "A program that yurt needs is not installed on this machine.",
    "runtime-unsafe": "The folder for connection sockets is not private.",
    "site-refused": "The site rejected the operation; the message includes the reason.",
    "site-invalid": "The site printed a word that yurt cannot use, such as a host name with a space.",
    "storage-unreadable": "The disk with the runs of a site is not mounted or cannot be read now. Safe to retry.",
    "storage-unsafe": "Other users own a folder of yurt, or can write to it.",
    "cancel-unconfirmed": "Slurm still lists the job of a run after it was cancelled. Safe to retry.",
    "slurm-not-responding": "Slurm is installed on the site, but its controller does not respond. Safe to retry.",
    "output-failed": "yurt cannot write its output.",
    "cannot-write": "A file or folder on this machine cannot be written.",
    "job-refused": "The scheduler rejected the job; the message includes the reason.",
    "scheduler-busy": "The scheduler does not accept the job at the moment; a saved run is submitted later.",
    "submit-limit": "You have reached your job limit on the site; the run is saved and submitted later.",
    "index-unavailable": "The run index on this machine cannot be opened.",
    "impossible": "The run can never start: the context cannot provide what it requests, or its dependency failed.",
    "secret-missing": "A secret is neither in the environment nor in the keyring of this machine.",
    "secret-invalid": "The value of a secret is too long or cannot be stored in an environment variable.",
    "keyring-unavailable": "The system keyring is missing or rejected the operation.",
    "build-failed": "An environment could not be built on its site.",
    "calls-missing": "The function calls of a sweep are neither on its site nor on this machine.",
    "call-without-result": "A function call ended without a result.",
    "call-python": "A function call ran under a different version of Python than the program that submitted it.",
    "call-detached": "The program stopped waiting for a function call, which continues.",
    "call-not-loaded": "A function or its arguments could not be loaded on the site.",
    "call-initializer": "The initializer of an executor failed, so the executor accepts no more calls.",
    "call-not-sent": "A function or its arguments cannot be pickled or are too large.",
    "result-not-sent": "The result of a call cannot be pickled or is too large.",
    "result-unsafe": "The result file of a call is not yours alone, so yurt does not unpickle it.",
    "run-not-running": "The run is not running.",
    "port-in-use": "The port of this machine is in use, or needs root.",
    "run-not-finished": "The run has not finished.",
    "code-missing": "The code of a run is neither on its site nor on this machine.",
    "only-copy": "The operation would remove the only copy of a run's results.",
    "site-busy": "The site did not allocate a node in time.",
    "git-failed": "git failed; the message includes the output.",
    "project-refused": "The folder cannot be used as a project, because it contains your keys.",
    "snapshot-too-large": "A file, or the project as a whole, is too large for a code snapshot.",
    "no-room": "A copy does not fit into a storage tier.",
    "no-lasting-tier": "A context has no storage tier that lasts.",
    "disk-full": "A disk is full.",
    "quota-full": "Your disk quota is used up.",
    "ssh-login-required": "The site asks for a password or a code; run `yurt login`.",
    "ssh-denied": "The site rejected your ssh key.",
    "ssh-key-unknown": "The site's host key is unknown; `yurt login` shows it and asks you to confirm it.",
    "ssh-key-changed": "The site's host key differs from the recorded one.",
    "ssh-no-such-host": "The host name cannot be resolved.",
    "ssh-no-route": "There is no network route to the host.",
    "ssh-refused": "The host refuses connections.",
    "ssh-timeout": "The connection to the host timed out.",
    "ssh-closed": "The host closed the connection.",
    "ssh-busy": "All sessions of the ssh connection are in use.",
    "ssh-failed": "ssh failed; the message includes the output.",
    "home-locked": "Another sync of the same home is running.",
    "home-vanished": "The root of a home has lost its file .yurt-home; its disk may not be mounted.",
    "unison-missing": "Unison 2.52 or newer is not installed on one side of a sync.",
    "home-sync-failed": "Unison gave up; the message includes its reason. Nothing is lost.",
    "agent-running": "The agent is already running.",
    "agent-failed": "The agent did not start; the message includes its last words.",
    "agent-busy": "The agent has not ended yet.",
    "agent-elsewhere": "The agent runs on another machine that shares your home.",
    "service-failed": "The program of a service could not be started, or ended.",
    "server-failed": "A server on this machine, such as TensorBoard, ended or did not start.",
    "interrupted": "You pressed Ctrl-C.",
    "lab-not-linux": "The lab needs Linux namespaces.",
    "lab-needs-root": "The lab needs root to create namespaces, mounts and network links.",
    "lab-no-namespaces": "The kernel or the surrounding container does not allow new namespaces or mounts.",
    "lab-packages-missing": "Debian packages that the lab needs are not installed.",
    "lab-install-failed": "The package manager could not install the lab's packages.",
    "lab-disk-low": "There is not enough free disk space for the lab.",
    "lab-root-failed": "The root file system with another version of Slurm could not be built.",
    "lab-address-in-use": "The lab's network addresses are already in use on this machine.",
    "lab-busy": "Another yurt process is starting or stopping this lab.",
    "lab-down": "The lab, or the named host, is not running.",
    "lab-boot-failed": "A host or a daemon of the lab did not start.",
    "lab-setting-refused": "Slurm rejected a setting of `yurt lab set`; the cluster keeps its previous settings.",
    "lab-fault-failed": "A fault could not be injected or healed.",
    "bug": "yurt hit an unexpected error and wrote a report with the traceback.",
}
"""Every error code and its meaning, as printed in the reference."""


class YurtError(Exception):
    """An error with a fault, a code from `CODES`, and a hint that names the next command.

    The hint is also a note of the exception, so a traceback ends with it.
    """

    fault: ClassVar[Fault] = "bug"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        if code not in CODES:
            raise LookupError(f"error code {code!r} is not listed in yurt.errors.CODES")
        super().__init__(message)
        self.message = message
        self.code = code
        self._hint = ""
        self.hint = hint

    @property
    def hint(self) -> str:
        """What the user can do next; may be empty."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        others = [note for note in getattr(self, "__notes__", []) if note != f"hint: {self._hint}"]
        self._hint = hint
        self.__notes__ = [*others, f"hint: {hint}"] if hint else others

    @property
    def text(self) -> str:
        """The message, and the hint on a line of its own."""
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickle, which would not pass the keyword arguments."""
        return _rebuild, (type(self), self.message, self.code, self.hint), self.__dict__


def _rebuild(kind: type[YurtError], message: str, code: str, hint: str) -> YurtError:
    return kind(message, code=code, hint=hint)


class UserError(YurtError):
    """The command or a file of the user is invalid. Retrying without a change fails again."""

    fault = "user"
    exit_code = 2


def no_kubernetes(context: str) -> UserError:
    """Return the error for every use of a Kubernetes cluster."""
    return UserError(
        f"context '{context}' is a Kubernetes cluster, which yurt does not support yet",
        code="context-unsupported",
        hint="run `yurt context list` to see all contexts, and use another one with `--context NAME`",
    )


class NotFoundError(YurtError):
    """The named run, context, host or file does not exist."""

    fault = "user"
    exit_code = 3


def in_one_line(quoted: str) -> str:
    """Return a quoted word of sh for a message, in which a line of the word cannot pose as one of yurt."""
    return quoted.replace("\n", "'$'\\n''")


class UnconfirmedError(UserError):
    """A project wants something that its user has not agreed to: a question on a terminal, an error otherwise.

    `names` are package indexes and other addresses, files or folders of this machine, or packages to build from source.
    """

    def __init__(self, message: str, *, kind: Consent, names: Sequence[str]) -> None:
        from shlex import quote

        option = {"build": "--build ", "write": "--write "}.get(kind, "")
        words = [f"{option}{in_one_line(quote(each))}" for each in names]
        hint = f"if you trust the project that far, run `yurt trust {' '.join(words)}` in it"
        super().__init__(message, code="not-confirmed", hint=hint)
        self.kind, self.names = kind, list(names)


class UnreachableError(YurtError):
    """The site could not be reached or queried. Safe to retry."""

    fault = "transient"
    exit_code = 4


class DownloadError(UnreachableError):
    """A package index, or another host than the site, could not be reached from this machine."""


class RefusedError(YurtError):
    """The site or this machine rejected the operation."""

    fault = "site"
    exit_code = 5


ELSEWHERE = "free some space, or download to another disk with `--to DIR`"


class HereIsFullError(RefusedError):
    """A disk or quota of this machine is full."""


def here_is_full(target: object, reason: str = "", *, hint: str = ELSEWHERE) -> HereIsFullError:
    """Return the error for a full disk or quota on this machine; `reason` is the message of the failed program."""
    if "quota" in reason.lower():
        reason = "your disk quota on this machine is exceeded"
        return HereIsFullError(f"cannot write {target}: {reason}", code="quota-full", hint=hint)
    return HereIsFullError(f"cannot write {target}: the disk of this machine is full", code="disk-full", hint=hint)


def use_another(variable: str) -> str:
    """Return the hint for a folder of yurt on this machine that cannot be written: a variable names another one."""
    return f"use a folder that you can write to: `export {variable}=FOLDER`"


def one_of(names: Iterable[str]) -> str:
    """Return what the user can type, for a hint after "use": one of `a`, `b` or `c`; `a` if it is the only name."""
    *others, last = [f"`{name}`" for name in names] or ["NAME"]
    return f"one of {', '.join(others)} or {last}" if others else last
