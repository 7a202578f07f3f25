"""Metrics of runs as text: a table, curves, CSV."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import app, render
from yurt.cli.listing import listing
from yurt.model import curve_plot, plot
from yurt.model.curve_plot import Pair

if TYPE_CHECKING:
    from yurt.tracking.metrics import MetricPoint, RunMetrics

COLUMNS = ("run", "metric", "last", "step", "min", "max", "points", "age")

COLOURS = (36, 33, 32, 35, 31, 34, 96, 93, 92, 95, 91, 94)
"""Escape codes of the colours of curves, in order."""


def print_table(found: Sequence[RunMetrics], most: int | None) -> None:
    """Print the last value of each metric; at most so many rows."""
    now = time.time()
    rows = [_row(run, name, points, now) for run in found for name, points in run.metrics.items()]
    shown = rows[:most]
    listing(
        COLUMNS,
        shown,
        styles=[""] * len(shown),
        styled="run",
        shrinks=("run", "metric"),
        drops=("points", "min", "max", "age", "step"),
        numbers=COLUMNS[2:],
    )
    if len(shown) < len(rows):
        print(f"{render.count(len(rows) - len(shown), 'more row')}; --csv prints all values", file=sys.stderr)


def _row(run: RunMetrics, name: str, points: Sequence[MetricPoint], now: float) -> tuple[str, ...]:
    values = [value for point in points if (value := _number(point)) == value]
    last = points[-1]
    low, high = (plot.label(min(values)), plot.label(max(values))) if values else ("", "")
    age = render.span(now - last.time) if last.time else ""
    return (run.label, name, plot.label(_number(last)), f"{last.step:.10g}", low, high, str(len(points)), age)


def _number(point: MetricPoint) -> float:
    return float("nan") if point.value is None else point.value


def as_csv(found: Sequence[RunMetrics]) -> str:
    """Return all values as CSV (RFC 4180)."""
    import csv
    import io

    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["run", "metric", "step", "time", "value"])
    for run in found:
        for name, points in run.metrics.items():
            writer.writerows(
                [run.run, name, f"{each.step:.17g}", f"{each.time:.3f}", repr(_number(each))] for each in points
            )
    return out.getvalue()


class _Curve:
    """A curve to draw."""

    def __init__(self, label: str, pairs: list[Pair]) -> None:
        self.label, self.pairs = label, pairs


def print_plot(found: Sequence[RunMetrics], metric: str, *, number: int, over: str, smooth: float) -> None:
    """Print the curves of a metric in one picture; `number`: how many pictures share the screen."""
    curves, dropped = [], 0
    for run in found:
        points = run.metrics.get(metric, [])
        pairs = curve_plot.finite(_pairs(run, points, over))
        dropped += len(points) - len(pairs)
        if pairs:
            curves.append(_Curve(run.label, curve_plot.smoothed(pairs, smooth)))
    if not curves:
        print(f"{render.plain(metric)}: no finite values yet", file=sys.stderr)
        return
    kept = [curves[at] for at in curve_plot.chosen([curve.pairs[-1][1] for curve in curves])]
    unit = "step" if over == "step" else "minute"
    _print_curves(metric, kept, unit, number, smooth)
    if len(kept) < len(curves):
        half = len(kept) // 2
        print(
            f"{len(kept)} of {len(curves)} curves: the {half} with the lowest and the {half} with the highest last"
            " value; select others with --filter",
            file=sys.stderr,
        )
    if dropped:
        print(f"{render.count(dropped, 'value')} not shown: not finite", file=sys.stderr)


def print_pairs(label: str, title: str, pairs: Sequence[Pair], *, unit: str, number: int) -> None:
    """Print one curve; there must be at least one pair."""
    _print_curves(title, [_Curve(label, list(pairs))], unit, number, 0)


def _print_curves(title: str, curves: Sequence[_Curve], unit: str, number: int, smooth: float) -> None:
    if app.plain():
        print(render.plain(f"{title} over {unit}s"))
        for curve in curves:
            print(render.plain(f"{curve.label}: {curve_plot.words(curve.pairs, unit)}"))
    else:
        _draw(title, curves, unit, number, smooth)


def _pairs(run: RunMetrics, points: Sequence[MetricPoint], over: str) -> list[Pair]:
    if over == "step" or not points:
        return [(each.step, _number(each)) for each in points]
    start = min(each.time for each in points)
    if run.started is not None and run.started < start:
        start = run.started
    return [((each.time - start) / 60, _number(each)) for each in points]


def _draw(metric: str, curves: Sequence[_Curve], unit: str, number: int, smooth: float) -> None:
    import shutil

    size = shutil.get_terminal_size()
    paint, ascii_only = render.colours(), not _unicode()
    room = (size.lines - 2) // number - len(curves) - 4
    made = curve_plot.draw(
        [curve.pairs for curve in curves],
        size.columns,
        max(6, min(20, room)),
        braille=not ascii_only and (paint or len(curves) == 1),
        ascii_only=ascii_only,
    )
    notes = ["log"] * made.log_y + [f"smoothed {smooth:g}"] * bool(smooth)
    title = f"{metric} ({', '.join(notes)})" if notes else metric
    print(render.plain(f"{title} over {unit}s"))
    for line in made.lines:
        print("".join(_painted(each.text, each.curve, paint) for each in line).rstrip())
    for at, curve in enumerate(curves):
        mark = "--" if paint and ascii_only else "━━" if paint else "" if len(curves) == 1 else curve_plot.MARKS[at]
        x, y = curve.pairs[-1]
        last = f"{plot.label(y)} at {unit} {x:.6g}"
        label = render.short(curve.label, max(8, size.columns - len(last) - len(mark) - 5))
        print(f"{_painted(mark, at, paint)}{' ' * bool(mark)}{label}  {last}")


def _unicode() -> bool:
    return (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "").startswith("utf")


def _painted(text: str, curve: int, paint: bool) -> str:
    return f"\033[{COLOURS[curve % len(COLOURS)]}m{text}\033[0m" if paint and curve >= 0 and text else text
