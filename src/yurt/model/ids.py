"""The ids of runs: `<time>-<random>`, sortable, short to type by either part. Pure."""

from __future__ import annotations

import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without i, l, o and u: nothing looks like anything else."""

SWEEP = "s"
"""The letter ids of sweeps begin with; no run's does before the year 2800."""

TIME_LETTERS, RANDOM_LETTERS = 7, 5

_ID = re.compile(f"[{ALPHABET}]{{{TIME_LETTERS}}}-[{ALPHABET}]{{{RANDOM_LETTERS}}}")


def make(seconds: float, randomness: int) -> str:
    """The id of a run made at that time (seconds since 1970), with that random number."""
    return f"{_letters(int(seconds), TIME_LETTERS)}-{_letters(randomness, RANDOM_LETTERS)}"


def make_sweep(seconds: float, randomness: int) -> str:
    """The id of a sweep."""
    return SWEEP + make(seconds, randomness)


def task(sweep: str, index: int) -> str:
    """The id of a task of a sweep."""
    return f"{sweep}.{index}"


def is_sweep(text: str) -> bool:
    return text[:1] == SWEEP and is_id(text[1:])


def split_task(text: str) -> tuple[str, int] | None:
    """The sweep and the number of a task; None if it is no id of one."""
    sweep, dot, number = text.partition(".")
    return (sweep, int(number)) if dot and is_sweep(sweep) and number.isdigit() and number.isascii() else None


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def names_folder(text: str) -> bool:
    """Whether it is the id of what has a folder among runs, or among sweeps."""
    return is_id(text) or is_sweep(text)


def made_at(run: str) -> float:
    """When a run of that id was made (seconds since 1970)."""
    seconds = 0
    whole = run.partition(".")[0]
    for letter in (whole[1:] if is_sweep(whole) else whole)[:TIME_LETTERS]:
        seconds = seconds * 32 + ALPHABET.index(letter)
    return float(seconds)


def short(number: int, letters: int) -> str:
    """A short word that stands for a large number, such as a hash."""
    return _letters(number, letters)


def _letters(number: int, count: int) -> str:
    digits = []
    for _each in range(count):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
