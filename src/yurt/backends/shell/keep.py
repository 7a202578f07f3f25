"""Copies results to a lasting tier of the same site: on the site itself, without this machine in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from yurt.backends import scripts
from yurt.backends.shell import ownership, storage
from yurt.errors import RefusedError, YurtError
from yurt.model.files import NOTHING, KeepItem, KeepSource, KeptItem, Measures, checked
from yurt.model.storage import TierPlace, TierUse
from yurt.transport.base import Host, refusal

MOST = 200
"""How many items one request copies."""

SILENCE = 60
"""Seconds without a sign of the script after which the connection counts as lost; it sends one every five seconds."""


def look(host: Host, items: Sequence[KeepItem], places: Sequence[TierPlace]) -> tuple[list[KeepSource], list[TierUse]]:
    """See `Files.keep_look`."""
    mark = f"yurt-{os.urandom(8).hex()}"
    script = scripts.text("measure.sh") + scripts.text("tier_use.sh") + scripts.text("keep_look.sh")
    lines = [f"tier {each.name} {each.path}" for each in places]
    lines += [f"{'run' if each.run else 'place'} {each.source}" for each in items]
    stdin = "".join(f"{line}\n" for line in lines).encode()
    folders = _run_folders(items)
    check = ownership.check(folders) if folders else ""
    answer = host.run(check + script, mark, stdin=stdin, timeout=600)
    if answer.code:
        raise _failure(host, "cannot read the results", answer.code, answer.errors)
    parts = storage.sections(mark, answer.text)
    with host.reading():
        return [_source(parts.get(f"item {at}", ["gone"])) for at in range(len(items))], storage.uses(parts, places)


def copy(
    host: Host, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
) -> list[KeptItem]:
    """See `Files.keep`."""
    done: list[KeptItem] = []
    script = scripts.text("measure.sh") + scripts.text("keep_copy.sh")
    for first in range(0, len(items), MOST):
        some = items[first : first + MOST]
        words = [word for each in some for word in ("run" if each.run else "place", each.source, each.target)]
        folders = _run_folders(some)
        text = (ownership.check(folders) if folders else "") + script
        lines: list[str] = []
        rest = b""
        with host.stream(text, tier, "yes" if checkpoints else "", *words, silence=SILENCE) as output:
            for chunk in output:
                *whole, rest = (rest + chunk).split(b"\n")
                lines += [line.decode(errors="replace") for line in whole if line != b"tick" and line]
                copied(len(done) + len(lines))
            if output.code:
                errors = output.err.decode(errors="replace").strip()
                raise _failure(host, "cannot copy the results", output.code, errors)
        with host.reading():
            done += [_kept(line) for line in lines[: len(some)]]
    return done


def _failure(host: Host, what: str, code: int, errors: str) -> YurtError:
    if code in ownership.REFUSALS:
        return ownership.refused(host.name, code, errors)
    found = refusal(host.name, what, errors)
    return found if isinstance(found, RefusedError) else RefusedError(found.message, code="site-refused")


def _run_folders(items: Sequence[KeepItem]) -> list[str]:
    return [each.source for each in items if each.run]


def _source(lines: Sequence[str]) -> KeepSource:
    what, *measures = lines
    if what != "there":
        return KeepSource(what=what)
    return KeepSource(what=what, measures=Measures(*map(checked, measures), *([NOTHING] * (3 - len(measures)))))


def _kept(line: str) -> KeptItem:
    word, _, rest = line.partition(" ")
    if word == "failed":
        return KeptItem(failed=rest)
    measures = Measures(*(("" if each == "-" else checked(each)) for each in rest.split())) if rest else Measures()
    return KeptItem(copied=word == "done", measures=measures)
