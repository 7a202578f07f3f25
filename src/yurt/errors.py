"""Every error yurt can raise on purpose: whose fault it is, and what the user does next.

Nothing here prints or exits; `yurt.cli.main` turns an error into a message and an exit code.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Fault = Literal["user", "site", "transient", "bug"]

CODES: dict[str, str] = {
    "usage": "The command line could not be understood.",
    "config-invalid": "A configuration file holds something yurt cannot use.",
    "spec-failed": "A spec file of the user's failed, or gave no experiments.",
    "config-unwritable": "A configuration file could not be written.",
    "context-taken": "A context of that name exists and belongs to the user, so yurt left it alone.",
    "context-changed": "A context was changed by somebody else while it was being edited.",
    "context-built-in": "The context `local` is part of yurt and cannot be removed.",
    "editor-failed": "The editor could not be started, or ended with an error.",
    "not-found": "What was named does not exist.",
    "answer-lost": "The connection ended before the far side's answer was complete; repeating is safe.",
    "answer-late": "The far side gave no answer in time; repeating is safe.",
    "program-missing": "A program that yurt calls is not on this machine.",
    "runtime-unsafe": "The folder for connections is not private.",
    "site-refused": "The far side would not do it, for the reason it gave.",
    "slurm-silent": "Slurm is installed on the site and its controller does not answer.",
    "output-failed": "What yurt had to say could not be written.",
    "job-refused": "The scheduler would not take the job, for the reason it gave.",
    "submit-limit": "The user has as many jobs on the site as they may; the run waits for room.",
    "index-unusable": "The index of runs on this machine cannot be opened.",
    "impossible": "The context cannot give what the run asks for, by what is known of it.",
    "secret-missing": "A secret is neither in the environment nor in the keyring of this machine.",
    "secret-unusable": "The value of a secret is too long, or no variable can hold it.",
    "keyring-unusable": "The system's keyring is not there, or will not do it.",
    "calls-missing": "The calls of functions that a sweep makes are neither on its site nor on this machine.",
    "call-died": "A call of a function ended without a result.",
    "call-python": "A call of a function reached another version of Python than the one that sent it.",
    "call-left": "The program stopped waiting for a call of a function, which goes on.",
    "call-not-loaded": "A function, or its arguments, could not be loaded where it was to run.",
    "call-not-sent": "A function, or its arguments, cannot travel.",
    "result-unusable": "The result of a call is too large, or cannot travel.",
    "run-ended": "The run has ended already.",
    "run-not-running": "The run is not running now.",
    "run-unfinished": "The run has not ended yet.",
    "code-missing": "The code of a run is neither on its site any more nor on this machine.",
    "run-not-ended": "The run has not ended yet.",
    "only-copy": "It would be the only copy of a run's results that is removed.",
    "site-busy": "The site gave no node in the time that was waited.",
    "git-failed": "git failed, with the words it gave.",
    "snapshot-too-large": "A file, or all files together, are too large to travel as code.",
    "disk-full": "A disk is full.",
    "quota-full": "The user's quota is used up.",
    "ssh-login-needed": "The site wants a password or code, which only `yurt login` may ask for.",
    "ssh-denied": "The site did not accept the user's key.",
    "ssh-key-unknown": "The site's host key is not known yet; `yurt login` shows it and asks.",
    "ssh-key-changed": "The site's host key is not the one that was known.",
    "ssh-no-such-host": "The host's name could not be resolved.",
    "ssh-no-route": "The network has no way to the host.",
    "ssh-refused": "The host is there and takes no connections.",
    "ssh-timeout": "The host does not answer.",
    "ssh-closed": "The host closed the connection.",
    "ssh-busy": "All sessions the connection may carry stayed busy.",
    "ssh-failed": "ssh failed, with the words it gave.",
    "interrupted": "The user pressed Ctrl-C.",
    "lab-not-linux": "The lab needs Linux: its hosts are made of Linux namespaces.",
    "lab-needs-root": "The lab needs root: it makes namespaces, mounts and network links.",
    "lab-no-namespaces": "The kernel, or the container around yurt, refuses new namespaces or mounts.",
    "lab-packages-missing": "Debian packages the lab is built from are not installed.",
    "lab-install-failed": "The package manager could not install what the lab needs.",
    "lab-disk-low": "Too little free disk for the lab's file systems.",
    "lab-address-in-use": "The addresses the lab would use belong to something else on this machine.",
    "lab-busy": "Another yurt is bringing this lab up or down.",
    "lab-down": "The lab, or the host asked for, is not up.",
    "lab-boot-failed": "A host or a daemon of the lab did not come up.",
    "lab-setting-refused": "Slurm did not accept a setting of `yurt lab set`; the cluster keeps its earlier settings.",
    "lab-fault-failed": "A fault could not be put in place or healed.",
    "bug": "Something yurt did not foresee; a report with the traceback was written to a file.",
}
"""Each code, with the sentence the reference gives for it."""


class YurtError(Exception):
    """An error with a fault, a code of `CODES`, and a hint that names the next command."""

    fault: ClassVar[Fault] = "bug"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        if code not in CODES:
            raise LookupError(f"error code {code!r} is not listed in yurt.errors.CODES")
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """As pickle takes it to another process."""
        return _again, (type(self), self.message, self.code, self.hint), self.__dict__


def _again(kind: type[YurtError], message: str, code: str, hint: str) -> YurtError:
    return kind(message, code=code, hint=hint)


class UserError(YurtError):
    """The request or a file of the user's is wrong. Repeating it unchanged fails again."""

    fault = "user"
    exit_code = 2


class NotFoundError(YurtError):
    """What the user named does not exist."""

    fault = "user"
    exit_code = 3


class UnreachableError(YurtError):
    """The site could not be reached or asked. Safe to repeat."""

    fault = "transient"
    exit_code = 4


class RefusedError(YurtError):
    """The site, or this machine, said no."""

    fault = "site"
    exit_code = 5


def here_is_full(target: object, words: str = "") -> RefusedError:
    """The error for a disk of this machine that has no room, by the words of whoever found out."""
    if "quota" in words.lower():
        return RefusedError(f"your quota is used up here, at {target}", code="quota-full", hint="--to DIR")
    return RefusedError(f"the disk is full here, at {target}", code="disk-full", hint="free some space, or --to DIR")
