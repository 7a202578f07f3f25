"""Finds what only Linux or GNU has, in code that also runs on macOS: everything but the lab and the scripts for Slurm.

An exception is in tools/portability_allowed.py, with its reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.portability_allowed import ALLOWED

ROOT = Path(__file__).parent.parent
SOURCE = "src/yurt/"
LINUX = (
    *("src/yurt/lab/", "src/yurt/backends/slurm/", "src/yurt/testing/"),
    *("src/yurt/backends/shell/env_", "src/yurt/backends/shell/envs.py", "src/yurt/backends/job/env_copy.sh"),
    "src/yurt/backends/job/gather_tasks.sh",
)
"""Only for Linux: the lab, scripts for Slurm, environments, which are built on clusters, and test suites."""

SENT = (
    *("src/yurt/backends/shell/", "src/yurt/backends/job/place.sh", "src/yurt/transport/not_gnu.sh"),
    *(f"src/yurt/homes/{name}.sh" for name in ("backups", "look", "restore", "survey")),
)
PROVIDED = ("mv -T", "find -printf", "head -c of a pipe")
"""In scripts that a host runs, not_gnu.sh provides these; in job.sh it does not."""

OPTION = r"(?:\s+-\S+)*?\s+"
"""Options before the one that a rule looks for."""

PYTHON = {
    "/proc": r"^/(?:proc|sys)(?:/|$)|/dev/shm",
    "Linux call": r"^(?:sched_getaffinity|sched_setaffinity|posix_fadvise|pidfd_\w+|memfd_create|sendfile|splice"
    r"|copy_file_range|eventfd|pipe2|renameat2|prctl|accept4|getrandom|listxattr|getxattr|setxattr)$",
    "Linux constant": r"^(?:O_TMPFILE|O_PATH|O_DIRECT|SOCK_CLOEXEC|SOCK_NONBLOCK|F_SETPIPE_SZ|F_OFD_\w+|SO_PEERCRED"
    r"|MSG_NOSIGNAL|PR_SET_\w+|POSIX_FADV_\w+|RWF_\w+|epoll)$",
    "Linux program": r"^(?:setsid|timeout|flock|stdbuf|nproc|sha256sum|getent|tac|ldd|ip|systemctl|loginctl)$",
}
"""Patterns of names and of strings in Python."""

SHELL = {
    "/proc": r"/proc/|/sys/|/dev/shm",
    "stat -c": rf"\bstat{OPTION}?(?:-c|--)",
    "date -d": rf"\bdate{OPTION}?(?:-d|--)|\bdate\b[^|;)]*%N",
    "sed -i, -r or \\|": rf"\bsed{OPTION}?-(?:i|r)|\b(?:sed|grep)\b[^|;]*\\\|",
    "cp -T or long options": rf"\bcp{OPTION}?(?:-\w*[Tsl]|--\w)",
    "mv -T": rf"\bmv{OPTION}?-\w*T",
    "ln -T": rf"\bln{OPTION}?-\w*T",
    "find -printf": r"-printf\b",
    "find -perm /": r"-perm /",
    "find of GNU": r"-newer[mca]t\b|(?<=\s)(?:-regextype|-executable|-writable|-readable)\b",
    "xargs -d": rf"\bxargs{OPTION}?-d",
    "grep -P": rf"\bgrep{OPTION}?-\w*P",
    "sort -V or -z": rf"\bsort{OPTION}?-\w*[Vz]\b",
    "head -n -N": r"\bhead -n -\d",
    "tail -v or --pid": rf"\btail{OPTION}?(?:-v|--\w)",
    "du -b": rf"\bdu{OPTION}?(?:-\w*b|--\w)",
    "df --output": r"\bdf --",
    "mktemp -p": rf"\bmktemp{OPTION}?(?:-p|-t|--)",
    "base64 -w": r"\bbase64 -w",
    "touch -d": rf"\btouch{OPTION}?(?:-d|--\w)",
    "ls --": r"\bls --",
    "echo -e": r"\becho -[en]",
    "printf %q": r"\bprintf\b[^|;]*%q",
    "wait -n": r"\bwait -n",
    "<<<": r"<<<",
    "readlink -f": r"\breadlink -f|[(|;]\s*realpath\b",
    "tar --null": r"\btar\b[^|;]*--\w",
    "a program of Linux": r"(?:^|[;|&({]|\$\(|\bexec|\bthen|\belse|\bdo)\s*"
    r"(?:setsid|timeout|flock|stdbuf|nproc|sha256sum|getent|tac|shuf|ionice|taskset|hostname)(?:\s|\)|$)",
    "head -c of a pipe": r"(?<![|] )\bhead -c (?:\"[^\"]*\"|[^ |;&)]+)(?=\)| *(?:[|;&>]|$))",
    "gawk": r"\b(?:strftime|gensub|systime|asort|asorti|strtonum|PROCINFO|mktime)\(",
}
"""Patterns of lines of sh.

`find -maxdepth`, `grep -o`, `ps -o`, `xargs -r`, `local` and `head -c FILE` are alike everywhere.
"""


SYSTEM = ("os", "signal", "socket", "fcntl", "select", "shutil", "posix")
"""Modules whose names depend on the system."""


class Finding(NamedTuple):
    file: str
    line: int
    rule: str
    text: str


def in_shell(file: str, text: str, first: int = 1) -> Iterator[Finding]:
    """Yield what a script has of GNU or Linux; `first` is the number of its first line."""
    for number, line in enumerate(text.splitlines(), first):
        code = re.sub(r"(^|\s)#.*", "", line)
        for rule, pattern in SHELL.items():
            if re.search(pattern, code):
                yield Finding(file, number, rule, line.strip())


def in_python(file: str, text: str) -> Iterator[Finding]:
    """Yield what a module has of Linux, also in the scripts that it contains."""
    tree = ast.parse(text)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from _python(file, node.lineno, node.value, ("/proc",))
            if "/backends/" in file or "/transport/" in file:
                yield from (each for each in in_shell(file, node.value, node.lineno) if each.rule != "/proc")
        elif isinstance(node, ast.List) and node.elts and isinstance(first := node.elts[0], ast.Constant):
            yield from _python(file, node.lineno, str(first.value), ("Linux program",))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in SYSTEM:
            yield from _python(file, node.lineno, node.attr, ("Linux call", "Linux constant"))
        elif isinstance(node, ast.ImportFrom) and node.module in SYSTEM:
            for each in node.names:
                yield from _python(file, node.lineno, each.name, ("Linux call", "Linux constant"))


def _python(file: str, line: int, text: str, rules: tuple[str, ...]) -> Iterator[Finding]:
    yield from (Finding(file, line, rule, text) for rule in rules if re.search(PYTHON[rule], text))


def findings() -> list[Finding]:
    """Return all findings in code that also runs on macOS."""
    listed = subprocess.run(["git", "ls-files", SOURCE], cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[Finding] = []
    for name in listed.stdout.split():
        if name.startswith(LINUX) or not (ROOT / name).exists():
            continue
        if name.endswith(".sh"):
            found += in_shell(name, (ROOT / name).read_text())
        elif name.endswith(".py"):
            found += in_python(name, (ROOT / name).read_text())
    return found


def main() -> int:
    found = findings()
    found = [each for each in found if not (each.rule in PROVIDED and each.file.startswith(SENT))]
    bad = [each for each in found if (each.file.removeprefix(SOURCE), each.rule) not in ALLOWED]
    for each in bad:
        print(f"{each.file}:{each.line}: {each.rule}: {each.text}")
    unused = ALLOWED.keys() - {(each.file.removeprefix(SOURCE), each.rule) for each in found}
    for file, rule in sorted(unused):
        print(f"tools/portability_allowed.py: not needed any more: {file}: {rule}")
    return int(bool(bad or unused))


if __name__ == "__main__":
    sys.exit(main())
