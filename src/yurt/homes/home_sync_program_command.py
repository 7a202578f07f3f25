"""The command `home_sync`: without arguments a round of all homes; with arguments Unison itself, for each pair.

Its exit codes are those of Unison.
"""

from __future__ import annotations

import sys

from yurt import private

FATAL = 3
"""Unison's exit code if nothing was synced."""


def main() -> None:
    """Run `home_sync` and exit with Unison's exit code, the highest of all pairs."""
    private.ignore_relative_path()
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from yurt.errors import YurtError

    try:
        from yurt.homes import home_sync_program as verbs

        if arguments:
            return verbs.pass_through(arguments)
        return _batch()
    except YurtError as error:
        print(f"home_sync: {error.text}", file=sys.stderr)
        return FATAL


def _batch() -> int:
    """Sync all homes in batch mode; print one line per pair."""
    import click

    from yurt.cli.progress import watching
    from yurt.cli.root import root
    from yurt.homes import home_sync_program as verbs
    from yurt.homes.home_sync import print_outcomes

    with click.Context(root, info_name="home_sync"), watching() as watch:
        done = verbs.batch(watch=watch)
        print_outcomes(done.outcomes)
    for each in done.outcomes:
        for warning in each.warnings:
            print(f"home_sync: {each.pair}: {warning}", file=sys.stderr)
    return done.code
