"""Advice to ask for less: when it is given, and when it must not be."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.model.advice import FEWEST, MARGIN, Earlier, advice, memory, rounded_up, span
from yurt.model.run import Resources
from yurt.model.usage import Usage

ASKED = Resources(cpus=8, memory_mb=16384, minutes=720, gpus=1)
RUN = Earlier(
    state="completed",
    resources=ASKED,
    usage=Usage(seconds=4200, cpu_seconds=4200, memory_mb=2400, gpu_percent=40.0),
    seconds=4200,
    same=True,
)


def but(run: Earlier, **fields: object) -> Earlier:
    return msgspec.structs.replace(run, **fields)


def used(**fields: object) -> Earlier:
    assert RUN.usage is not None
    return but(RUN, usage=msgspec.structs.replace(RUN.usage, **fields))


def test_wasteful_requests() -> None:
    assert advice(ASKED, [RUN] * 41) == [
        "ask for 3G instead of 16G with `--mem 3G`: 41 similar runs never used more than 2.3G",
        "ask for 2 instead of 8 CPUs with `--cpus 2`: 41 similar runs kept at most 1.0 CPUs busy on average",
        "ask for 2 h instead of 12 h with `--time 120`: 41 runs of this command took at most 1 h 10 min, and a job with"
        " a shorter limit often starts earlier",
    ]


def test_runs_whose_memory_is_unknown_do_not_count_for_it() -> None:
    unknown = used(memory_mb=None)
    assert not [each for each in advice(ASKED, [*[RUN] * (FEWEST - 1), *[unknown] * 9]) if "--mem" in each]
    few = advice(ASKED, [*[RUN] * FEWEST, *[unknown] * 9])
    assert few[0].endswith(": 5 similar runs never used more than 2.3G")
    largest = used(seconds=0.2, memory_mb=300, largest_process=True)  # of a run that was too short for samples
    assert "ask for 384M instead of 16G" in advice(ASKED, [largest] * FEWEST)[0]


def test_idle_gpus() -> None:
    (only,) = advice(Resources(gpus=1), [used(gpu_percent=0.4)] * 5)
    assert only == "check that it uses its GPU: in 5 similar runs, the mean utilization was at most 0 %"
    assert advice(Resources(gpus=1), [used(gpu_percent=0.4)] * 5 + [RUN]) == []
    assert advice(Resources(), [used(gpu_percent=0.4)] * 5) == []


@pytest.mark.parametrize(
    "earlier",
    [
        [],
        [RUN] * (FEWEST - 1),
        [but(RUN, state="failed")] * 9,
        [but(RUN, usage=None, seconds=None)] * 9,
        [*[RUN] * 9, but(RUN, state="out_of_memory", same=False), but(RUN, state="timeout"), used(cpu_seconds=17000)],
        [*[used(nodes=2)] * 9, but(RUN, state="timeout")],
        [*[RUN] * 9, used(memory_mb=9000, cpu_seconds=4200 * 4), but(RUN, seconds=6 * 3600)],
    ],
)
def test_no_advice(earlier: list[Earlier]) -> None:
    """From few, failed, unmeasured or multi-node runs, or if one of them needed about as much as is requested."""
    assert advice(ASKED, earlier) == []


def test_small_waste() -> None:
    small = Resources(cpus=2, memory_mb=1200, minutes=50)
    assert advice(small, [used(memory_mb=200, cpu_seconds=5000)] * 9) == []
    assert advice(Resources(), [RUN] * 9) == []


def test_killed_with_less() -> None:
    """A run that was killed with 4G needs more than that, and one that was killed with the site's default an unknown
    amount."""
    killed = but(RUN, state="out_of_memory", resources=Resources(memory_mb=4096))
    assert advice(Resources(memory_mb=16384), [*[RUN] * 9, killed])[0].startswith("ask for 6G instead of 16G")
    assert advice(Resources(memory_mb=16384), [*[RUN] * 9, but(killed, resources=Resources())]) == []


def test_other_arguments_say_nothing_of_the_time() -> None:
    assert advice(Resources(minutes=720), [but(RUN, same=False)] * 9) == []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=20), st.integers(1, 500_000))
def test_never_less_than_used(used_mb: list[int], asked: int) -> None:
    found = advice(Resources(memory_mb=asked), [used(memory_mb=each) for each in used_mb])
    if not found:
        return
    advised = next(size for size in map(rounded_up, range(1, 500_000, 64)) if memory(size) == found[0].split()[2])
    assert max(used_mb) * MARGIN - 1 <= advised <= asked / 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 3_000_000))
def test_sizes(mb: int) -> None:
    assert mb <= rounded_up(mb) <= max(64, 1.5 * mb + 1)


def test_words() -> None:
    assert [memory(each) for each in (1, 999, 1024, 2400, 16384)] == ["1M", "999M", "1G", "2.3G", "16G"]
    assert [span(each) for each in (1, 119, 420, 3600, 4200)] == ["1 s", "119 s", "7 min", "1 h", "1 h 10 min"]
