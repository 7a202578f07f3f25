"""The line in ~/.ssh/config that includes yurt's ssh configuration: propose, write or decline it."""

from __future__ import annotations

import difflib
import sys

from yurt.cli import call, render
from yurt.config.paths import as_typed
from yurt.dev import ssh_config
from yurt.dev.ssh_config import accept, decline, line, proposal


def config() -> str:
    """Return the path of yurt's ssh configuration, as typed in a shell."""
    return as_typed(ssh_config.file())


def propose(name: str, *, quiet: bool = False) -> None:
    """Show the change and ask, once, if a terminal is there to answer; else print the line, unless `quiet`."""
    from yurt.dev.desks import ssh_name

    found = proposal()
    now, host = call.current(), ssh_name(name)
    if found is None or now.json or now.quiet:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not quiet:
            print(f"for `ssh {host}`, make this the first line of {found.file}:\n  {line()}", file=sys.stderr)
        return
    if quiet:
        return
    before, after = found.before.splitlines(), found.after.splitlines()
    for text in list(difflib.unified_diff(before, after, found.file, found.file, lineterm="", n=1)):
        print(render.plain(text), file=sys.stderr)
    question = f"Include yurt's ssh configuration, so that ssh, scp and editors know {host}? [Y/n] "
    print(question, end="", file=sys.stderr)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if answer.strip().lower() in ("", "y", "yes") and answer:
        if not accept(found):
            print(f"{found.file} has changed; nothing was written", file=sys.stderr)
    else:
        decline()
        print(f"not changed; `ssh -F {config()} {host}` works without it", file=sys.stderr)
