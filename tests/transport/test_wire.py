"""The protocol: framed output, truncated scripts, login shells of all kinds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from yurt.errors import UserError
from yurt.transport import wire


@given(noise=st.binary(), answer=st.binary(), after=st.binary(), code=st.integers(0, 255))
def test_output_is_found_in_any_noise(noise: bytes, answer: bytes, after: bytes, code: int) -> None:
    parcel = wire.pack("true")
    output = noise + parcel.begin + answer + parcel.end + f"{code}\n".encode() + after
    assert wire.unpack(parcel, output) == wire.Framed(answer, code)


def test_an_impossible_exit_code_is_none() -> None:
    parcel = wire.pack("true")
    for code in (b"9" * 5000, b"-1", "²".encode()):
        assert wire.unpack(parcel, parcel.begin + b"a" + parcel.end + code + b"\n") == wire.Framed(
            b"a" + parcel.end + code + b"\n", None
        )


@given(answer=st.binary(), cut=st.integers(0, 60))
def test_truncated_output_has_no_exit_code(answer: bytes, cut: int) -> None:
    parcel = wire.pack("true")
    whole = parcel.begin + answer + parcel.end + b"0\n"
    part = whole[: -min(cut, len(parcel.end) + 1) - 1]
    framed = wire.unpack(parcel, part)
    assert framed is None or framed.code is None or part.endswith(b" 0")


@given(chunks=st.lists(st.binary(max_size=40)))
def test_a_stream_never_yields_a_part_of_the_end_marker(chunks: list[bytes]) -> None:
    parcel = wire.pack("true")
    answer = b"".join(chunks) + parcel.end[:7]
    held, out = b"", b""
    for byte in answer + parcel.end + b"0\n":
        held += bytes([byte])
        sure = wire.certain(parcel.end, held)
        out, held = out + held[:sure], held[sure:]
    assert out == answer and held.startswith(parcel.end)


@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20), max_size=3))
@example(words=["\\n \\\\ \\c \\0101 %s\n", 'it\'s "$x" `y`', "-n"])
def test_any_text_can_be_an_argument_of_a_short_script(words: list[str]) -> None:
    parcel = wire.pack('for each; do printf "%s|" "$each"; done', words)
    assert parcel.command == wire.ONE_LINE
    done = subprocess.run(["sh", "-c", parcel.command], input=parcel.stdin, capture_output=True, check=True)
    framed = wire.unpack(parcel, done.stdout)
    assert framed == wire.Framed("".join(f"{each}|" for each in words).encode(), 0)


@pytest.mark.parametrize("long", [False, True])
def test_a_truncated_script_does_nothing(tmp_path: Path, long: bool) -> None:
    """Truncated at every byte: either nothing runs, or the script was complete."""
    ledger = tmp_path / "ledger"
    padding = f"# {'x' * wire.SHORT}\n" if long else ""
    parcel = wire.pack(f'{padding}echo one >> "$1"\nif true; then\necho two >> "$1"\nfi', [str(ledger)])
    assert (parcel.command == wire.ONE_LINE) is not long
    for length in range(len(padding), len(parcel.stdin)):
        ledger.unlink(missing_ok=True)
        subprocess.run(["sh", "-c", parcel.command], input=parcel.stdin[:length], capture_output=True, check=False)
        assert not ledger.exists() or ledger.read_text() == "one\ntwo\n", length
    ledger.unlink(missing_ok=True)
    subprocess.run(["sh", "-c", parcel.command], input=parcel.stdin, capture_output=True, check=True)
    assert ledger.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "tcsh", "fish", "zsh"])
def test_the_command_means_the_same_in_every_login_shell(shell: str) -> None:
    if shutil.which(shell) is None and not os.environ.get("CI"):
        pytest.skip(f"needs the Debian package {shell}")
    parcel = wire.pack('cat; echo "$1"', ["it's"])
    assert parcel.command == wire.ONE_LINE
    done = subprocess.run([shell, "-c", parcel.command], input=parcel.stdin + b"in\n", capture_output=True, check=False)
    assert wire.unpack(parcel, done.stdout) == wire.Framed(b"in\nit's\n", 0)


def test_nul_is_refused() -> None:
    with pytest.raises(UserError):
        wire.pack("true", ["a\0b"])
