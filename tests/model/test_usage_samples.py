"""Samples of what a run used: totals and curves, from whole and from damaged files."""

from yurt.model.usage import Usage, tasks_usage
from yurt.model.usage_samples import curve, samples, usage

TWO_STARTS = b"""\
= 1 1 4 2048
1 0.5 0.40 0.00 100 100 - -
1 10.0 20.00 0.00 900 900 50 300
= 2 1 4 2048
2 1.0 1.00 0.00 200 200 - -
2 30.0 45.00 5.00 700 700 20 800
"""


def test_totals_of_all_starts() -> None:
    found = usage(TWO_STARTS)
    assert found == Usage(
        seconds=40.0,
        cpu_seconds=65.0,
        memory_mb=900,
        gpu_percent=round((50 * 9.5 + 20 * 29) / 38.5, 1),
        gpu_memory_mb=800,
        cpus=4,
        memory_limit_mb=2048,
    )
    assert found.busy_cpus == 1.625
    assert Usage(seconds=0.06, cpu_seconds=0.03).busy_cpus == 0.5
    assert Usage(seconds=0.02, cpu_seconds=0.01).busy_cpus is None


def test_curve() -> None:
    found = curve(TWO_STARTS)
    assert found.seconds == [0.5, 10.0, 11.0, 40.0]
    assert found.cpus == [0.8, 2.06, 1.0, 1.52]
    assert found.memory_mb == [100, 900, 200, 700] and found.gpu_percent == [None, 50, None, 20]
    assert curve(b"1 0.3 0.20 0.00 0 0 - -\n").memory_mb == [None]  # it ended before a sample


def test_damaged_files() -> None:
    assert usage(b"") is None and usage(b"= 1 1 - -\n") is None and curve(b"x").seconds == []
    cut = TWO_STARTS[:-20] + b"2 31.0 46.00 5.00 700 700 20 800\n"  # after a full disk, in the middle of a line
    assert [each.seconds for each in samples(cut)] == [0.5, 10.0, 1.0]
    assert len(samples(TWO_STARTS[:-1])) == 3  # the last line may be incomplete
    assert usage(b"1 0.1 0.00 0.00 0 0 - -\n") == Usage(seconds=0.1, cpu_seconds=0.0)


def test_tasks() -> None:
    used = [Usage(seconds=10.0 * each, cpu_seconds=5.0 * each, memory_mb=100 * each) for each in (1, 2, 9)]
    found = tasks_usage(used)
    assert found is not None and tasks_usage([]) is None
    assert (found.tasks, found.cpus, found.memory_mb, found.memory_mb_most) == (3, 0.5, 200, 900)
    assert (found.seconds, found.seconds_most, found.gpu_percent) == (20.0, 90.0, None)
    assert tasks_usage(used[:2]).memory_mb == 150  # type: ignore[union-attr]
