"""Explains why uv, pip or conda failed: a likely cause, the relevant lines and a hint. No I/O.

The rules are a table. The first rule that matches wins: a full disk also makes a compiler fail, and without internet no
version of any package is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from yurt.envs.target import Target

Kind = Literal[
    "quota",
    "disk",
    "killed",
    "hash",
    "internet",
    "python",
    "wheel",
    "wheelhouse",
    "conda",
    "version",
    "conflict",
    "headers",
    "compiler",
    "permission",
    "other",
]

MOST_LINES = 5
MOST_READ = 2000
"""A build can print much more; the cause is near the end."""

LONGEST_READ = 2000
"""How much of a line is searched: the rules take the square of its length."""

LONGEST = 300
"""The longest line that is shown in full."""

NOISE = re.compile(
    r"\s*(?:Traceback|File \"|\^+$|return |raise |at |Using C?Python|Using cached|Resolved \d|Prepared \d|Looking in"
    r"|Collecting|Downloading|Processing|Requirement already|Installing collected|\[notice\]|warning:|WARNING:"
    r"|note: This (?:error|is an issue)|\[(?:end of output|stdout|stderr)\]|[│╰].*(?:exit code|output)|exit code:"
    r"|.*metadata-generation-failed|.*subprocess-exited-with-error|hint: Build failures usually|running |copying )"
)
"""Lines that do not say why something failed."""

CONDA_MISSING = re.compile(r"Packages?NotFound|nothing provides")
WARNING = re.compile(r"\s*(?:warning|WARNING)\b")


class Failure(msgspec.Struct, frozen=True):
    """Why a program failed. `lines` are the few lines of its output that say so."""

    kind: Kind
    cause: str
    lines: list[str]
    hint: str

    @property
    def sentence(self) -> str:
        """The cause, and the most relevant line of the output."""
        return f"{self.cause} ({self.lines[0]})" if self.lines else self.cause


class Rule(msgspec.Struct, frozen=True):
    """A line that matches one of `patterns` has this cause.

    In `cause`, WHAT and NEEDED are the groups `what` and `needed` of the pattern, PYTHON and PLATFORM are the site's.
    """

    kind: Kind
    patterns: tuple[str, ...]
    cause: str
    hint: str


FREE = "remove files that you no longer need, or place the environment on another file system"
ON_NODE = "build the environment on a compute node"
NETWORK = "check the connection, the proxy and the address of the package index, then try again"
VERSIONS = "change the version where it is declared, or use another Python"
RELAX = "relax one of the versions"
TOOLS = "load a module that provides it with `modules_to_load` of the context, or choose a version that has a wheel"

RULES = (
    Rule(
        "quota",
        (r"(?i)disk quota exceeded", r"\[Errno 122\]", r"os error 122"),
        "your disk quota is exceeded",
        FREE,
    ),
    Rule(
        "disk",
        (r"(?i)no space left on device", r"\[Errno 28\]", r"os error 28", r"NoSpaceLeftError"),
        "the disk is full",
        FREE,
    ),
    Rule(
        "killed",
        (r"(?i)cpu time limit exceeded", r"SIGXCPU"),
        "the build exceeded the CPU time limit of this machine",
        ON_NODE,
    ),
    Rule(
        "killed",
        (r"(?i)\bout of memory\b", r"(?i)oom[-_ ]kill", r"MemoryError", r"(?i)cannot allocate memory"),
        "the build ran out of memory",
        ON_NODE,
    ),
    Rule(
        "killed",
        (
            r"^(?:\S+: )*(?:line \d+: +)?(?:\d+ )?Killed\b",
            r"signal: 9\b",
            r"exit code: -9\b",
            r"SIGKILL",
            r"Killed signal",
        ),
        "the build was killed, probably by a limit on memory or CPU time",
        ON_NODE,
    ),
    Rule(
        "other",
        (r"^(?P<what>the installer of conda .+)",),
        "WHAT",
        "check `conda_installer` of the context",
    ),
    Rule(
        "internet",
        (
            r"Git operation failed",
            r"(?i)failed to (?:clone|fetch)\b.*(?:repository|into)",
            r"git (?:clone|fetch) .* did not run",
        ),
        "a git repository that the project declares cannot be read",
        "check its address, the commit, and that `git clone` of it works without a question",
    ),
    Rule(
        "other",
        (r"required `project\.(?P<what>\w+)` field",),
        "pyproject.toml has no `WHAT` in its table `project`",
        "add it, or add its name to `dynamic` there",
    ),
    Rule(
        "python",
        (r"^Python (?P<what>\S+) cannot be downloaded on",),
        "the site has no Python WHAT, and uv cannot download one there",
        "load a module that provides it with `modules_to_load` of the context, or choose another with `--env-python`",
    ),
    Rule(
        "hash",
        (r"Hash mismatch for `(?P<what>[^`]+)`", r"DO NOT MATCH THE HASHES", r"(?i)ChecksumMismatchError"),
        "the index has another file than the locked one for WHAT",
        "if the index changed on purpose, resolve the packages again",
    ),
    Rule(
        "internet",
        (r"ProxyError", r"tunnel error", r"(?i)cannot connect to proxy"),
        "the proxy cannot be reached",
        "check `HTTPS_PROXY`, then try again",
    ),
    Rule(
        "internet",
        (
            *(r"dns error", r"(?i)name or service not known", r"(?i)temporary failure in name resolution"),
            *(r"(?i)could not resolve host", r"nodename nor servname", r"network was disabled", r"(?i)offline mode"),
        ),
        "there is no internet: the name of a host cannot be resolved",
        NETWORK,
    ),
    Rule(
        "internet",
        (r"(?i)certificate verify failed", r"invalid peer certificate", r"SSLError"),
        "the certificate of the package index is not trusted",
        "set `SSL_CERT_FILE` to a file with the certificates of your network",
    ),
    Rule(
        "internet",
        (
            r"(?i)\b401 unauthorized",
            r"(?i)\b403 forbidden",
            r"(?i)\b407 proxy",
            r"(?i)client error \(40[137]\b",
            r"HTTP error 40[137]\b",
        ),
        "the package index rejects the login",
        "check the user name and password of the index in your settings of pip or uv",
    ),
    Rule(
        "internet",
        (
            *(r"(?i)connection (?:refused|reset|timed out)", r"(?i)network is unreachable", r"(?i)no route to host"),
            *(r"(?i)read timed out", r"(?i)operation timed out", r"error sending request", r"CondaHTTPError"),
            *(r"HTTP 000 CONNECTION FAILED", r"(?i)server error \(5\d\d\b", r"\b50\d (?:Bad|Service|Gateway|Internal)"),
        ),
        "the package index cannot be reached",
        NETWORK,
    ),
    Rule(
        "python",
        (
            r"Python version \([^)]*\) does not satisfy Python(?P<needed>\S+) and (?P<what>\S+) depends on",
            r"Package '(?P<what>[^']+)' requires a different Python: \S+ not in '(?P<needed>[^']+)'",
            r"(?P<what>\S+) requires Python (?P<needed>[<>=!~][^ ,]+)",
        ),
        "WHAT requires Python NEEDED, but the site has Python PYTHON",
        VERSIONS,
    ),
    Rule(
        "python",
        (r"Python version \([^)]*\) does not satisfy Python(?P<needed>[<>=!~][^ ,]+)",),
        "a package requires Python NEEDED, but the site has Python PYTHON",
        VERSIONS,
    ),
    Rule(
        "python",
        (r"Ignored the following versions that require a different python version: (?P<what>.+)",),
        "some versions require another Python than PYTHON",
        VERSIONS,
    ),
    Rule(
        "wheel",
        (
            r"(?P<what>\S+) has no wheels with a matching",
            r"(?P<what>\S+\.whl) is not a supported wheel",
            r"distribution `?(?P<what>[^`\s]+)`? .*can't be installed because it doesn't have a source",
        ),
        "WHAT has no wheel for Python PYTHON on PLATFORM",
        VERSIONS,
    ),
    Rule(
        "wheel",
        (
            r"(?P<what>\S+) has no usable wheels",
            r"satisfies the requirement (?P<what>[^\s(]+) .*from versions: none",
        ),
        "WHAT has no wheel that can be used on PLATFORM with Python PYTHON",
        VERSIONS,
    ),
    Rule(
        "wheelhouse",
        (r"error: (?P<what>/.+\.whl) is no longer in the wheelhouse",),
        "WHAT is no longer in the wheelhouse",
        "choose the packages again with `yurt env build --upgrade`",
    ),
    Rule(
        "conda",
        (r"nothing provides (?:requested )?(?P<what>[^\s,]+)", r"^\s+- (?P<what>[a-z][\w.=<>*-]+)$"),
        "no conda channel has WHAT",
        "check its name and version, or add the channel that has it",
    ),
    Rule(
        "conflict",
        (r"UnsatisfiableError", r"ResolutionImpossible", r"conflicting dependencies"),
        "the declared versions contradict each other",
        RELAX,
    ),
    Rule(
        "version",
        (r"(?P<what>\S+) was not found in the (?:package registry|provided package locations|cache)",),
        "no package index has WHAT",
        "check the name, or declare the index that has it",
    ),
    Rule(
        "version",
        (r"there (?:is|are) no versions? of (?P<what>\S+)",),
        "no package index has WHAT",
        VERSIONS,
    ),
    Rule(
        "conflict",
        (r"Because .*we can conclude that", r"requirements? .*unsatisfiable", r"Because you require"),
        "the declared versions contradict each other",
        RELAX,
    ),
    Rule(
        "version",
        (r"No matching distribution found for (?P<what>[^\s(]+)",),
        "no version of WHAT can be installed on PLATFORM with Python PYTHON",
        VERSIONS,
    ),
    Rule(
        "headers",
        (r"fatal error: (?P<what>\S+\.h\w*): No such file", r"fatal error: '(?P<what>\S+\.h\w*)' file not found"),
        "the header file WHAT is missing",
        TOOLS,
    ),
    Rule(
        "headers",
        (r"cannot find -l(?P<what>\S+?):?(?:\s|$)", r"Package '?(?P<what>[\w.+-]+?)'?,? .*not found"),
        "the library WHAT is missing",
        TOOLS,
    ),
    Rule(
        "compiler",
        (
            r"No such file or directory: '(?P<what>[\w./+-]*(?:cc|\+\+|clang|gfortran|cmake|ninja|make|cargo))'",
            r"(?P<what>\S*(?:cc|\+\+|clang|gfortran|cmake|cargo|rustc)): (?:command )?not found",
            r"unable to execute '(?P<what>[^']+)'",
            r"can't find (?P<what>Rust) compiler",
            r"(?P<what>CMake|nvcc) (?:must be installed|was not found)",
            r"(?P<what>CUDA_HOME) (?:environment variable )?is not set",
        ),
        "the compiler or build tool WHAT is missing",
        TOOLS,
    ),
    Rule(
        "compiler",
        (r"Failed building wheel for (?P<what>\S+)", r"Failed to build `(?P<what>[^`]+)`"),
        "WHAT cannot be built from its source code",
        "choose a version that has a wheel",
    ),
    Rule(
        "permission",
        (r"(?i)permission denied", r"\[Errno 13\]", r"(?i)read-only file system", r"EnvironmentNotWritableError"),
        "a file or folder cannot be accessed",
        "check who owns it and who can write to it",
    ),
)


def explain(log: str, target: Target | None = None) -> Failure:
    """Return why a program failed, from its output. There is always a cause, and there are at most five lines."""
    lines = [line.rstrip() for line in _plain(log).splitlines() if line.strip()][-MOST_READ:]
    failure = _by_rules([line for line in lines if not WARNING.match(line)], target)
    if failure.kind in ("version", "wheel", "other"):
        # pip only warns about a lost connection, and then finds no version.
        warned = _by_rules([line for line in lines if WARNING.match(line)], target)
        return warned if warned.kind == "internet" else failure
    return failure


def _by_rules(lines: Sequence[str], target: Target | None) -> Failure:
    for rule in RULES:
        if rule.kind == "conda" and not any(map(CONDA_MISSING.search, lines)):
            continue
        for number, line in enumerate(lines):
            for pattern in rule.patterns:
                if found := re.search(pattern, line):
                    return Failure(rule.kind, _filled(rule.cause, found, target), _told(lines, number), rule.hint)
    last = [line for line in lines if not NOISE.match(line)][-MOST_LINES:]
    return Failure("other", "the build failed", [_cut(line) for line in last], "read the rest of the output")


def _filled(cause: str, found: re.Match[str], target: Target | None) -> str:
    groups = found.groupdict()
    values = {
        "WHAT": (groups.get("what") or "a package").strip("`'\"(),;"),
        "NEEDED": (groups.get("needed") or "of another version").rstrip(".,"),
        "PYTHON": target.python_version if target else "of another version",
        "PLATFORM": f"{target.machine} ({target.libc})" if target else "this platform",
    }
    return re.sub("|".join(values), lambda name: values[name[0]], cause)


def _told(lines: Sequence[str], number: int) -> list[str]:
    """Return the line, and up to four lines after it that are not noise. A line before it may name an address."""
    after = [line for line in lines[number + 1 :] if not NOISE.match(line)]
    before = [line for line in lines[:number] if "Failed to fetch: " in line]
    told = dict.fromkeys(_cut(line) for line in [*before[-1:], lines[number], *after])
    return list(told)[:MOST_LINES]


def _cut(line: str) -> str:
    line = line.strip().removeprefix("cause: ").removeprefix("ERROR: ").removeprefix("error: ")
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


def _plain(log: str) -> str:
    """Return the log without colours, overwritten progress bars, passwords in addresses, and the ends of huge lines."""
    log = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", log).replace("\r\n", "\n")
    log = "\n".join(line.rpartition("\r")[2] for line in log.split("\n"))
    log = re.sub(r"(?<=://)[^/\s:@]+(?::[^/\s@]*)?@", "", log)
    return "\n".join(line[:LONGEST_READ] for line in log.split("\n"))
