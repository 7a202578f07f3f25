"""The test suite that every Host must pass. Subclass it in a test module and define a fixture `host`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from yurt.errors import NotFoundError, RefusedError, UnreachableError
from yurt.transport.base import Host

AWKWARD = ["", "a b", "it's", '"', "$HOME `id` $(id)", "\\", "*", "-n", "ü€", "line\nline", "tab\t", "!!", "~", "\r"]


class HostContract:
    """The contract of run, stream, put and get on any host."""

    def test_answer_is_the_scripts_own(self, host: Host) -> None:
        answer = host.run("echo out; echo err >&2; exit 7")
        assert (answer.code, answer.out, answer.err) == (7, b"out\n", b"err\n")

    def test_output_is_kept_to_the_byte(self, host: Host) -> None:
        assert host.run("printf 'no newline'").out == b"no newline"
        assert host.run("printf '\\n\\n\\0\\377\\n'").out == b"\n\n\0\xff\n"
        assert host.run(":").out == b""

    def test_arguments_arrive_as_given(self, host: Host) -> None:
        answer = host.run('for word in "$@"; do printf "%s\\0" "$word"; done', *AWKWARD)
        assert answer.out.decode().split("\0")[:-1] == AWKWARD

    def test_input_is_the_scripts(self, host: Host) -> None:
        content = bytes(range(256)) * 500
        assert host.run("cat", stdin=content).out == content
        assert host.run("read -r first; echo got $first", stdin=b"one\ntwo\n").out == b"got one\n"
        assert host.run("echo unread", stdin=content * 4).out == b"unread\n"

    def test_a_failing_step_is_an_answer(self, host: Host) -> None:
        assert host.run("no-such-program-anywhere").code == 127
        assert host.run("set -e; false; echo not reached").out == b""

    def test_no_answer_in_time(self, host: Host) -> None:
        host.run(":")  # connecting may take longer than the timeout below
        with pytest.raises(UnreachableError) as caught:
            host.run("sleep 60", timeout=1)
        assert caught.value.code == "timed-out"

    def test_put_and_get(self, host: Host, tmp_path: Path) -> None:
        folder = f"/tmp/yurt-contract-{time.time_ns()}"
        content = bytes(range(256)) * 2000
        target = f"{folder}/new folder/it's a file"
        try:
            host.put(b"old", target)
            host.put(content, target, mode=0o640)
            host.get(target, tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == content
            listing = host.run('ls -A "$1"; stat -c %a "$2"', f"{folder}/new folder", target)
            assert listing.text.splitlines() == ["it's a file", "640"]
            host.put(b"", target)
            host.get(target, tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == b""
        finally:
            host.run('rm -rf "$1"', folder)

    def test_get_of_nothing_leaves_nothing(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("old")
        with pytest.raises(NotFoundError):
            host.get("/no/such/file", tmp_path / "kept")
        assert [path.name for path in tmp_path.iterdir()] == ["kept"] and (tmp_path / "kept").read_text() == "old"

    def test_put_where_nobody_may_write(self, host: Host) -> None:
        with pytest.raises(RefusedError):
            host.put(b"x", "/proc/no/such/place")

    def test_put_onto_a_folder_is_refused(self, host: Host) -> None:
        folder = f"/tmp/yurt-folder-{time.time_ns()}"
        host.run('mkdir -p "$1"', folder)
        with pytest.raises(RefusedError, match="it is a folder"):
            host.put(b"x", folder)
        assert host.run('ls -A "$1"; rmdir "$1"', folder).out == b""

    def test_a_stream_that_times_out(self, host: Host) -> None:
        with host.stream("echo one; sleep 60", silence=1) as stream, pytest.raises(UnreachableError) as caught:
            for chunk in stream:
                assert chunk == b"one\n"
        assert caught.value.code == "timed-out"

    def test_stream_comes_as_it_is_written(self, host: Host) -> None:
        """The second line is written when the first was received; or after a minute, and then both arrive together."""
        mark = f"/tmp/yurt-stream-{time.time_ns()}"
        waits = 'for try in $(seq 600); do [ ! -e "$1" ] || break; sleep 0.1; done'
        chunks = []
        with host.stream(f'echo "line 1"; {waits}; rm -f "$1"; echo "line 2"; echo err >&2; exit 4', mark) as stream:
            for chunk in stream:
                chunks.append(chunk)
                if len(chunks) == 1:
                    host.run(': > "$1"', mark)
        assert b"".join(chunks) == b"line 1\nline 2\n"
        assert b"line 2" not in chunks[0], "both lines arrived together"
        assert stream.code == 4

    def test_stream_left_early_ends_the_script(self, host: Host) -> None:
        mark = f"/tmp/yurt-stream-{time.time_ns()}"
        ticks = 'echo $$ > "$1"; for try in $(seq 1000); do echo tick || exit; sleep 0.2; done'
        gone = 'for try in $(seq 1000); do kill -0 "$1" 2> /dev/null || exit 0; sleep 0.1; done; exit 1'
        with host.stream(ticks, mark) as stream:
            assert next(iter(stream)).startswith(b"tick")
            alive = host.run('read -r pid < "$1" && rm "$1" && kill -0 "$pid" && echo "$pid"', mark)
            assert alive.code == 0, alive
        assert host.run(gone, alive.text.strip(), timeout=300).code == 0

    def test_several_at_once(self, host: Host) -> None:
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda number: host.run('echo "$1"', str(number)).text, range(12)))
        assert answers == [f"{number}\n" for number in range(12)]
