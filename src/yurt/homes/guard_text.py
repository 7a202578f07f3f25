"""What a first sync of the homes would copy, as a table and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yurt.cli import render

if TYPE_CHECKING:
    from yurt.homes.guard import Amount, Folder, Survey

ROWS = 20
"""Folders with a row of their own, the largest; the others share one."""


def show(survey: Survey) -> None:
    """Print the top-level folders of the homes, how much each place would receive, and warnings."""
    rows = [_row(survey, f"{each.name}/" if each.name else "files", [each]) for each in survey.folders[:ROWS]]
    rest = survey.folders[ROWS:]
    if rest:
        rows.append(_row(survey, render.count(len(rest), "smaller folder"), rest))
    if len(survey.folders) > 1:
        rows.append(_row(survey, "all", survey.folders))
    render.table(["folder", *(f"on {place}" for place in survey.places)], rows)
    render.fact("", f"the first sync copies {_total(survey)}; it deletes and overwrites nothing", 0)
    for warning in survey.warnings:
        render.fact("", f"warning: {warning}", 0)


def _row(survey: Survey, title: str, folders: list[Folder]) -> list[str]:
    cells = []
    for place in survey.places:
        amounts = [folder.places[place] for folder in folders if place in folder.places]
        cells.append(_words(sum(each.files for each in amounts), sum(each.size for each in amounts)))
    return [title, *cells]


def _words(files: int, size: int) -> str:
    return f"{render.amount(size)}, {render.count(files, 'file')}" if files else ""


def _total(survey: Survey) -> str:
    """Return what each place receives, in words: at most 1.2 GB (34 files) to local and nothing to alpha."""
    texts = [_received(survey.at_least[name], survey.at_most[name]) + f" to {name}" for name in survey.places]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _received(least: Amount, most: Amount) -> str:
    if not most.files:
        return "nothing"
    words = f"{render.amount(most.size)} ({render.count(most.files, 'file')})"
    return words if least == most else f"at most {words}"
