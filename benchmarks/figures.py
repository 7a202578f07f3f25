"""Prints a table of measured values and their budgets."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One row: a measured value and its maximum (with `least`, its minimum). Without a budget, for comparison only."""

    label: str
    value: float
    budget: float | None = None
    least: bool = False

    @property
    def met(self) -> bool:
        if self.budget is None:
            return True
        return self.value >= self.budget if self.least else self.value <= self.budget


def table(title: str, figures: list[Figure], column: str = "value") -> int:
    """Print a table; return an exit code: 1 if a value is over its budget."""
    print(f"\n{title:46} {column:>13} {'budget':>9}")
    for each in figures:
        limit = "" if each.budget is None else f"{'>=' if each.least else '<='} {each.budget:g}"
        verdict = "" if each.budget is None else "ok" if each.met else "FAILED"
        shown = f"{each.value:d}" if isinstance(each.value, int) else f"{each.value:.2f}"
        print(f"{each.label:46} {shown:>13} {limit:>9}  {verdict}".rstrip(), flush=True)
    return 0 if all(each.met for each in figures) else 1
