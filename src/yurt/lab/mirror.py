"""The Debian mirror of this machine, as apt uses it: address, key ring, proxies, logins.

Reads apt's configuration only, and never a password: apt itself reads the files with logins.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path("/etc/apt")
PASSED_ON = re.compile(r"Acquire::(http|https|ftp)(::[^\" ]+)?::(Proxy|Proxy-Auto-Detect|CaInfo|Verify-Peer|Timeout)\b")
"""Settings of apt that decide how it reaches a mirror."""


def source(suite: str) -> str:
    """Return the line of sources.list for the main part of a Debian release; empty if apt has no Debian mirror."""
    uri = address()
    if not uri:
        return ""
    ring = signed_by(uri)
    return f"deb {f'[signed-by={ring}] ' if ring else ''}{uri} {suite} main"


def address() -> str:
    """Return the URI from which apt gets Debian itself, not its security updates; empty if there is none."""
    form = "$(SITE)|$(RELEASE)|$(COMPONENT)|$(LABEL)|$(CREATED_BY)"
    rows = [line.split("|") for line in _output(["apt-get", "indextargets", "--format", form]).splitlines()]
    found = [
        (label == "Debian", site)
        for site, release, component, label, created in (row for row in rows if len(row) == 5)
        # Before the first `apt-get update` there are no labels.
        if created == "Packages" and component == "main" and "-" not in release and not _other_archive(site, label)
    ]
    return max(found, key=lambda each: each[0])[1] if found else ""


def _other_archive(site: str, label: str) -> bool:
    return label != "Debian" if not label.startswith("$") and label else "debian" not in site or "security" in site


def signed_by(uri: str) -> str:
    """Return the key ring that apt's sources name for a URI; empty if they name none, or contain the key itself."""
    wanted = uri.rstrip("/")
    for uris, ring in _entries():
        if wanted in (each.rstrip("/") for each in uris) and ring.startswith("/"):
            return ring
    return ""


def _entries() -> Iterator[tuple[list[str], str]]:
    """Yield the URIs and the key ring of each entry of apt's sources, in both formats."""
    for path in [SOURCES / "sources.list", *sorted(SOURCES.glob("sources.list.d/*.list"))]:
        for line in _text(path).splitlines():
            found = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)", line)
            if found is not None:
                ring = re.search(r"signed-by=(\S+)", found[1] or "")
                yield [found[2]], ring[1] if ring is not None else ""
    for path in sorted(SOURCES.glob("sources.list.d/*.sources")):
        for paragraph in re.split(r"\n\s*\n", _text(path)):
            fields = dict(re.findall(r"^(\w[\w-]*):[ \t]*(.*)$", paragraph, re.MULTILINE))
            if fields.get("Enabled", "yes").lower() != "no":
                yield fields.get("URIs", "").split(), fields.get("Signed-By", "").strip()


def options() -> list[str]:
    """Return the settings of apt that decide how it reaches a mirror, as lines of apt.conf."""
    return [*(line for line in _output(["apt-config", "dump"]).splitlines() if PASSED_ON.match(line)), *logins()]


def logins() -> list[str]:
    """Return where this machine has the logins of mirrors (apt_auth.conf), as lines of apt.conf.

    The builder's apt would look for them in the new root. The files stay where they are.
    """
    found = _output(["apt-config", "shell", "netrc", "Dir::Etc::netrc/f", "netrcparts", "Dir::Etc::netrcparts/d"])
    paths = dict(line.partition("=")[::2] for line in found.splitlines())
    named = {name: "".join(shlex.split(path)) for name, path in paths.items()}
    return [f'Dir::Etc::{name} "{path}";' for name, path in named.items() if Path(path).exists()]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _output(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
