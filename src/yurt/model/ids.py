"""Ids of runs: `<time>-<random>`. They sort by time, and either part is short to type. Pure."""

from __future__ import annotations

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without i, l, o and u, which are easy to confuse."""

SWEEP = "s"
"""Prefix of sweep ids; run ids do not start with it before the year 2800."""

TIME_LETTERS, RANDOM_LETTERS = 7, 5


def make(seconds: float, randomness: int) -> str:
    """Return the id of a run created at that time (seconds since 1970), with that random number."""
    return f"{_letters(int(seconds), TIME_LETTERS)}-{_letters(randomness, RANDOM_LETTERS)}"


def make_sweep(seconds: float, randomness: int) -> str:
    """Return the id of a sweep, made like `make`."""
    return SWEEP + make(seconds, randomness)


def task(sweep: str, index: int) -> str:
    """Return the id of a task of a sweep."""
    return f"{sweep}.{index}"


def is_sweep(text: str) -> bool:
    return text[:1] == SWEEP and is_id(text[1:])


def split_task(text: str) -> tuple[str, int] | None:
    """Return the sweep and the number of a task; None if the text is not a task id."""
    sweep, dot, number = text.partition(".")
    return (sweep, int(number)) if dot and is_sweep(sweep) and number.isdigit() and number.isascii() else None


def is_id(text: str) -> bool:
    time, _dash, random = text.partition("-")
    return len(time) == TIME_LETTERS and len(random) == RANDOM_LETTERS and not (time + random).strip(ALPHABET)


def names_folder(text: str) -> bool:
    """Whether the text is the id of a run or a sweep, which have folders of their own."""
    return is_id(text) or is_sweep(text)


def made_at(run: str) -> float:
    """Return when the run with that id was created (seconds since 1970)."""
    seconds = 0
    parent = run.partition(".")[0]
    for character in (parent[1:] if is_sweep(parent) else parent)[:TIME_LETTERS]:
        seconds = seconds * 32 + ALPHABET.index(character)
    return float(seconds)


def short(number: int, letters: int) -> str:
    """Return a short text for a large number, such as a hash."""
    return _letters(number, letters)


def _letters(number: int, count: int) -> str:
    digits = []
    for _each in range(count):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
