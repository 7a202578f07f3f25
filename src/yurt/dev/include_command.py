"""Proposes to include yurt's ssh configuration in ~/.ssh/config, so that `ssh yurt-dev` works in every program."""

from __future__ import annotations

import difflib
import sys

from yurt.cli import app, render


def propose(name: str, *, quiet: bool = False) -> None:
    """Show the change and ask, once, if a terminal is there to answer; else print the line, unless `quiet`."""
    from yurt.dev import include as verbs
    from yurt.dev.desks import ssh_name

    found = verbs.proposal()
    now, host = app.current(), ssh_name(name)
    if found is None or now.json or now.quiet:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not quiet:
            print(f"for `ssh {host}`, make this the first line of {found.file}:\n  {verbs.line()}", file=sys.stderr)
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
        if not verbs.accept(found):
            print(f"{found.file} has changed; nothing was written", file=sys.stderr)
    else:
        verbs.decline()
        print(f"not changed; `ssh -F {verbs.config()} {host}` works without it", file=sys.stderr)
