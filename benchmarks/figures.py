"""A table of figures beside their budgets, and whether each was met."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One row: what was measured, and the most (or, with `least`, the least) it may be. No budget: for comparison."""

    label: str
    value: float
    budget: float | None = None
    least: bool = False

    @property
    def met(self) -> bool:
        if self.budget is None:
            return True
        return self.value >= self.budget if self.least else self.value <= self.budget


def table(title: str, figures: list[Figure], column: str = "figure") -> int:
    """Print it. Returns an exit code: 1 if a budget was missed."""
    print(f"\n{title:46} {column:>13} {'budget':>9}")
    for each in figures:
        limit = "" if each.budget is None else f"{'>=' if each.least else '<='} {each.budget:g}"
        verdict = "" if each.budget is None else "met" if each.met else "MISSED"
        shown = f"{each.value:d}" if isinstance(each.value, int) else f"{each.value:.2f}"
        print(f"{each.label:46} {shown:>13} {limit:>9}  {verdict}".rstrip(), flush=True)
    return 0 if all(each.met for each in figures) else 1
