"""What the output of a run can do to the user's terminal."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pexpect
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.calls import YURT
from tests.user import User
from yurt.cli.terminal import TerminalFilter, safe
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

ALLOWED = [
    *("\x1b[m", "\x1b[0m", "\x1b[1;31m", "\x1b[38;5;208m", "\x1b[38;2;1;2;3m", "\x1b[4:3m"),
    *("\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[C", "\x1b[10D", "\x1b[E", "\x1b[F", "\x1b[12G", "\x1b[K", "\x1b[2K"),
    *("\x1b[J", "\x1b[0J", "\r", "\n", "\t", "\b"),
]
FORBIDDEN = [
    *("\x1b]0;title\x07", "\x1b]2;title\x1b\\", "\x1bktitle\x1b\\", "\x1b]0;without an end"),
    *("\x1b]52;c;ZXZpbA==\x07", "\x1b]52;c;?\x07", "\x1b]8;;http://x\x1b\\", "\x1b]11;?\x07", "\x1b]9;4;1;50\x07"),
    *("\x1b[?2004h", "\x1b[?1049h", "\x1b[?1000h", "\x1b[?1h", "\x1b[?25l", "\x1b[>4;2m", "\x1b[?4m", "\x1b[>1u"),
    *("\x1b[6n", "\x1b[c", "\x1b[>c", "\x1b[5n", "\x1b[x", "\x1b[21t", "\x1b[18t", "\x1b[?6n", "\x1b[>q", "\x05"),
    *("\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Gi=1\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bZ", "\x1bc"),
    *(
        "\x1b=",
        "\x1b>",
        "\x1b(0",
        "\x1b#8",
        "\x1b%@",
        "\x1b[2J",
        "\x1b[3J",
        "\x1b[H",
        "\x1b[1;1H",
        "\x1b[1;5r",
        "\x1b[!p",
    ),
    *("\x1b7", "\x1b8", "\x1bM", "\x1b[s", "\x1b[4h", "\x1b[20h", "\x1b[5i", "\x1b[99999b", '\x1b["p', "\x1b[2 q"),
    *("\x9b6n", "\x9b31m", "\x9d0;title\x9c", "\x90$qm\x9c", "\x85", "\x9c", "\x07", "\x0e", "\x0f", "\x00", "\x7f"),
    *("\x0b", "\x0c", "\x18", "\x1a", "\x1b", "\x1b\x1b", "\x1b[", "\x1b]", "\x1b[12;"),
]
SAFE = re.compile(r"(?:[^\x00-\x1f\x7f-\x9f]|[\b\t\n\r]|\x1b\[(?:[0-9;:]*m|[0-9]*[A-GK]|0?J))*")
"""All that a terminal may receive, written independently of the filter."""

TEXT = st.sampled_from(["loss 0.1", "6n", "[31m", "]0;x", "\\", "m", "é", "█", "日本", "�", ";"])
STREAM = st.lists(
    st.one_of(
        TEXT.map(str.encode),
        st.sampled_from([*ALLOWED, *FORBIDDEN]).map(str.encode),
        st.sampled_from([b"\x9b", b"\x9d", b"\xc2", b"\xe2\x96", b"\xff", b"\x1b", b"[", b"]", b"\x07", b"?", b"1"]),
        st.binary(max_size=4),
    ),
    max_size=12,
).map(b"".join)


def _in_parts(content: bytes, cuts: list[int]) -> bytes:
    stream, found, at = TerminalFilter(), b"", 0
    for cut in [*sorted(cut % (len(content) + 1) for cut in cuts), len(content)]:
        found += stream.feed(content[at:cut])
        at = max(at, cut)
    return found + stream.end()


@given(STREAM)
@example(b"\x1b]0;a\x1b[6n")
@example(b"\x1b\x1b[6n")
@example(b"\x1b[\n6n")
def test_no_other_sequence_reaches_the_terminal(content: bytes) -> None:
    assert SAFE.fullmatch(safe(content).decode()) is not None


@given(STREAM, st.lists(st.integers(0, 200), max_size=6))
@example(b"\x1b]0;title\x1b\\text", [1, 3, 9, 10])
@example("\x9d0;é\x9ctext".encode(), [1, 4, 6])
def test_the_output_does_not_depend_on_the_parts(content: bytes, cuts: list[int]) -> None:
    whole = TerminalFilter()
    assert _in_parts(content, cuts) == whole.feed(content) + whole.end()


@given(st.lists(st.one_of(TEXT, st.sampled_from(ALLOWED)), max_size=12).map("".join), st.lists(st.integers(0, 99)))
def test_text_and_allowed_sequences_are_unchanged(text: str, cuts: list[int]) -> None:
    assert _in_parts(text.encode(), cuts) == text.encode()


@pytest.mark.parametrize("sequence", FORBIDDEN, ids=ascii)
def test_a_sequence_is_dropped_with_its_content(sequence: str) -> None:
    stream = TerminalFilter()
    assert stream.feed(f"before{sequence}\nafter".encode()) == b"before\nafter"
    assert safe(b"\xc3\xa9 \xff\x9b6n") == "é ��6n".encode()


def test_text_is_not_held_back() -> None:
    """Nor is text that follows a sequence without an end; an endless one takes no memory."""
    stream = TerminalFilter()
    assert stream.feed(b"50%|#####     |\r\x1b[") == b"50%|#####     |\r"
    assert stream.feed(b"K60%") == b"\x1b[K60%"
    assert stream.feed(b"\x1b]0;" + b"x" * 1000) == b""
    for _ in range(1000):
        assert stream.feed(b"x" * 1000) == b""
    assert len(stream._held) < 10
    assert stream.feed(b"\nnext") == b"\nnext"


def test_colours_are_reset_only_if_there_were_any() -> None:
    assert safe(b"\x1b[8mhidden") == b"\x1b[8mhidden\x1b[0m" and safe(b"plain\x1b]0;x\x07") == b"plain"


def test_ordinary_output_is_fast() -> None:
    """Compared with a pass over every byte in Python, which it must not have."""
    content = b"epoch 3 \x1b[32mloss\x1b[0m 0.123456 and more words about the training of a model\n" * 20_000
    best = [math.inf, math.inf]
    for which in (0, 1) * 3:  # a busy machine slows both
        began = time.process_time()
        safe(content) if which == 0 else bytes(byte for byte in content)
        best[which] = min(best[which], time.process_time() - began)
    assert best[0] < best[1] * 1.5


HOSTILE = (
    rb"\033]0;owned\007\033]52;c;ZXZpbA==\007\033[?2004h\033[?1049h\033[6n\033[c\005\302\2336n\033Pq\033\\"
    rb"\033[31mred\033[0m 10%%\r20%%\033[K\n"
).decode()


@pytest.fixture
def hostile(user: User) -> str:
    """A finished run whose output attacks the terminal; its id."""
    done = user("--context", "local", "-q", "run", "--wait", "sh", "-c", f"printf '{HOSTILE}'; printf '{HOSTILE}' >&2")
    assert done.code == 0
    return done.out.strip()


RAW = HOSTILE.encode().decode("unicode_escape").encode("latin-1").replace(b"%%", b"%")


@pytest.mark.parametrize("words", [["logs"], ["logs", "-f"], ["logs", "--tail", "3"]], ids=" ".join)
def test_logs_on_a_terminal(user: User, hostile: str, words: list[str]) -> None:
    child = user.spawn(*words, hostile)
    child.expect(pexpect.EOF)
    shown = child.before
    assert SAFE.fullmatch(shown) is not None and "owned" not in shown
    assert shown.count("\x1b[31mred\x1b[0m 10%\r20%\x1b[K\r\n") == 2


def test_logs_in_a_pipe_are_exact(user: User, hostile: str) -> None:
    done = subprocess.run(
        [YURT, "logs", hostile], env={**os.environ, **user.environment}, capture_output=True, check=True
    )
    assert done.stdout == RAW and done.stderr == RAW


def test_logs_as_json_on_a_terminal(user: User, hostile: str) -> None:
    child = user.spawn("logs", "--json", hostile)
    child.expect(pexpect.EOF)
    assert SAFE.fullmatch(child.before) is not None and "\\u009b6n" in child.before


def test_run_follow_and_labelled_lines(user: User) -> None:
    """Also for tasks of a sweep; colours of one task do not continue in the line of another."""
    script = f"printf 'start\\033[35m\\n'; printf '{HOSTILE}'"
    child = user.spawn("--context", "local", "run", "-f", "--grid", "n=1,2", "sh", "-c", script, columns=300)
    child.expect(pexpect.EOF)
    lines = [line for line in child.before.split("\r\n") if " | " in line]
    assert "owned" not in child.before and "\x1b]" not in child.before
    assert sum(line.endswith("| start\x1b[35m\x1b[0m") for line in lines) == 2


def test_colours_end_after_ctrl_c(user: User) -> None:
    run = user("--context", "local", "-q", "run", "sh", "-c", f"printf '\\033[35mpurple\\033['; {PATIENT}").out.strip()
    child = user.spawn("logs", "-f", run)
    child.expect_exact("\x1b[35mpurple")
    child.sendintr()
    child.expect(pexpect.EOF)
    assert child.before.rstrip().endswith("\x1b[0m") and "\x1b[\x1b" not in child.before


def test_title_of_a_real_terminal_is_unchanged(user: User, hostile: str, tmp_path: Path) -> None:
    tmux = shutil.which("tmux")
    if tmux is None:
        pytest.skip("needs the Debian package tmux")
    server = [tmux, "-f", "/dev/null", "-S", str(tmp_path / "tmux")]

    def ask(*words: str) -> str:
        return subprocess.run(
            [*server, *words], env={**os.environ, **user.environment}, capture_output=True, text=True, check=False
        ).stdout

    def shows(text: str) -> bool:
        return text in ask("capture-pane", "-p", "-t", "s")

    try:
        ask("new-session", "-d", "-s", "s", "-x", "100", "-y", "30", "sh")
        ask("send-keys", "-t", "s", f"{YURT} logs {hostile}; echo fin''ished", "Enter")
        eventually(lambda: shows("finished"))
        assert "owned" not in ask("display", "-p", "-t", "s", "#{pane_title}") and shows("20%")
        assert ask("display", "-p", "-t", "s", "#{alternate_on}").strip() == "0"
        ask("send-keys", "-t", "s", f"{YURT} logs {hostile} 2>&1 | cat; echo do''ne", "Enter")
        eventually(lambda: "owned" in ask("display", "-p", "-t", "s", "#{pane_title}"))  # the test can fail
    finally:
        ask("kill-server")
