"""Proposes to include yurt's ssh configuration in ~/.ssh/config, so that `ssh yurt-dev` works in every program."""

from __future__ import annotations

import difflib
import sys

from yurt.cli import app


def propose(*, quiet: bool = False) -> None:
    """Show the change and ask, once, if a terminal is there to answer; else print the line, unless `quiet`."""
    from yurt.verbs import dev_include as verbs

    found = verbs.proposal()
    now = app.current()
    if found is None or now.json or now.quiet:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not quiet:
            print(f"for `ssh yurt-dev`, make this the first line of {found.file}:\n  {verbs.line()}", file=sys.stderr)
        return
    if quiet:
        return
    before, after = found.before.splitlines(), found.after.splitlines()
    for text in list(difflib.unified_diff(before, after, found.file, found.file, lineterm="", n=1)):
        print(app_text(text), file=sys.stderr)
    print(
        "Include yurt's ssh configuration, so that ssh, scp and editors know yurt-dev? [Y/n] ", end="", file=sys.stderr
    )
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if answer.strip().lower() in ("", "y", "yes") and answer:
        if not verbs.accept(found):
            print(f"{found.file} has changed; nothing was written", file=sys.stderr)
    else:
        verbs.decline()
        print(f"not changed; `ssh -F {verbs.config()} yurt-dev` works without it", file=sys.stderr)


def app_text(text: str) -> str:
    """Return a line without characters that control a terminal."""
    from yurt.cli import render

    return render.plain(text)
