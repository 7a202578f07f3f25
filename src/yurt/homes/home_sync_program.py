"""home_sync: rounds in batch mode, or Unison with the user's own arguments for each pair."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from yurt import private
from yurt.cli.progress import watching
from yurt.cli.root import root
from yurt.errors import UserError, YurtError
from yurt.homes import client, doubts, finish, here, ledger, places, profile, programs, rounds
from yurt.homes.client import Start
from yurt.homes.config import Homes
from yurt.homes.home_sync import print_outcomes
from yurt.homes.outcomes import Outcome, Round
from yurt.homes.paths import homes
from yurt.homes.places import Pair
from yurt.homes.sync import NO_DOUBTS, Pass, code_of, compare_contents, paths_in
from yurt.model.progress import Watch, unwatched

ALONE = ("-help", "--help", "-version", "--version", "-doc", "-selftest")
"""Arguments with which Unison prints something and needs no roots."""

OTHER_NAMES = {"-testServer": "-testserver"}
"""Unison's own name of an option whose older name people know."""


def needs_no_roots(arguments: Sequence[str]) -> bool:
    return any(word in ALONE for word in arguments)


def without_roots(arguments: Sequence[str]) -> int:
    """Run this machine's Unison; return its exit code. RefusedError if there is none."""
    try:
        return subprocess.call(["unison", *arguments])
    except FileNotFoundError:
        raise programs.missing_here("") from None


def run(homes: Homes, arguments: Sequence[str]) -> int:
    """Run Unison for each pair, one after another; return the highest exit code.

    A good sync of everything in batch mode releases the jobs that waited for it, as `rounds.run` does. UserError: this
    machine is not one of the places.
    """
    words = [OTHER_NAMES.get(word, word) for word in arguments]
    pairs = places.pairs(homes)
    away = [pair for pair in pairs if not pair.client.here]
    if away:
        raise UserError(
            f"the pair {away[0].name} does not run on this machine",
            code="usage",
            hint=f"install home_sync there with `yurt home install {away[0].hub.name}`, and run it there",
        )
    batch = "-batch" in words
    full = batch and rounds.whole(words)
    outcomes, passes, known = [], {}, ledger.read()
    with here.locked() as lock:
        profile.ensure(pairs[0].client)
        for pair in pairs:
            me, began = rounds.me(lock), time.time()
            found = NO_DOUBTS if "-testserver" in words or paths_in(words) else doubts.find(pair, me.identity, known)
            if found.paths:
                compare_contents(pair, me.another(keep=True), found.paths, unwatched)
            start = me.another(direct=True, terminal=not batch, again=bool(found.paths), partly=not full)
            code, copied = _run(pair, start, rounds.arguments_for(pair, words))
            ended = Outcome(
                hub=pair.hub.name,
                spoke=pair.spoke.name,
                began=began,
                ended=time.time(),
                code=code,
                paths=paths_in(words),
            )
            outcomes.append(ended)
            copied = [*found.paths, *copied]
            passes[pair.name] = [Pass(outcome=ended, start=start, folders=[start.folder], copied=copied)]
        done = finish.run(homes, pairs, passes, outcomes, full=full)
    if full:
        ledger.add(each for each in done if each.code == 0)  # otherwise Unison told the user what is open, not us
    return max(each.code for each in done)


def _run(pair: Pair, start: Start, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Run Unison for one pair; return its exit code, and in batch mode what it copied."""
    sys.stdout.flush()
    if not start.terminal:
        done = client.run(pair, start, arguments, unwatched, _echo)
        return code_of(done), done.printed.copied
    with client.started(pair, start, arguments) as process:
        code = process.wait()
    return code if code in (0, 1, 2) else 3, []


def _echo(into: str, chunk: bytes) -> None:
    stream = sys.stdout if into == "out" else sys.stderr
    stream.buffer.write(chunk)
    stream.buffer.flush()


def batch(*, watch: Watch = unwatched) -> Round:
    """Sync all homes. UserError: no homes are in sync. RefusedError: another sync runs on this machine."""
    return rounds.run(homes(), watch=watch)


def pass_through(arguments: Sequence[str]) -> int:
    """Run Unison in the user's terminal with these arguments; return the highest exit code of all pairs.

    Arguments that need no roots, such as -help, run it once. Errors as for `batch`, and those of each place.
    """
    if needs_no_roots(arguments):
        return without_roots(arguments)
    return run(homes(), arguments)


FATAL = 3
"""Unison's exit code if nothing was synced."""


def main() -> None:
    """Run `home_sync` and exit with Unison's exit code, the highest of all pairs."""
    private.ignore_relative_path()
    try:
        code = _run_shown(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run_shown(arguments: list[str]) -> int:

    try:
        if arguments:
            return pass_through(arguments)
        return _batch()
    except YurtError as error:
        print(f"home_sync: {error.text}", file=sys.stderr)
        return FATAL


def _batch() -> int:
    """Sync all homes in batch mode; print one line per pair."""
    import click

    with click.Context(root, info_name="home_sync"), watching() as watch:
        done = batch(watch=watch)
        print_outcomes(done.outcomes)
    for each in done.outcomes:
        for warning in each.warnings:
            print(f"home_sync: {each.pair}: {warning}", file=sys.stderr)
    return done.code
