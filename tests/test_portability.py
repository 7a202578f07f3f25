"""The lint rule that finds what only Linux or GNU has."""

from __future__ import annotations

import pytest

from tools.portability import in_python, in_shell


@pytest.mark.parametrize(
    "line",
    [
        "stat -c %Y file",
        "now=$(date -d yesterday)",
        "date +%s.%N",
        "sed -i s/a/b/ file",
        r"sed 's/a\|b//'",
        "cp -rsT a b",
        "cp -a --reflink=auto a b",
        "mv -T a b",
        "mv -f -T a b",
        "ln -sfT a b",
        "find . -printf x",
        "find . -perm /022",
        "find . -newermt today",
        "xargs -0 -d x",
        "grep -oP x",
        "sort -V",
        "head -n -1 file",
        "tail --pid 1 file",
        "du -sb .",
        "df --output=avail .",
        "mktemp -p /tmp",
        "base64 -w 0",
        "touch -d now file",
        "ls --color",
        "echo -e x",
        "printf '%q' x",
        "wait -n",
        "cat <<< x",
        "readlink -f x",
        "x=$(nproc)\n",
        "setsid sleep 1",
        "x=$(timeout 5 sleep 1)",
        "printf x | sha256sum -c",
        "head -c 5 > file",
        "length=$(head -c 11)",
        "read -r x < /proc/self/stat",
        "awk '{ print strftime(1) }'",
    ],
)
def test_shell(line: str) -> None:
    assert list(in_shell("x.sh", f"true\n{line} "))


@pytest.mark.parametrize(
    "line",
    [
        "# stat -c is only GNU's",
        "date +%s",
        "sed -n -e 's/a/b/p' file",
        "cp -a a b && cp -Rp a b",
        "mv -f a b",
        "find . -maxdepth 1 -mmin +10 -print0 | xargs -0 rm",
        "head -c 10 file",
        "tail -c +5 file | head -c 10",
        "tail -n 1 file",
        "du -sk .",
        "mktemp -d x.XXXXXX",
        "command -v setsid",
        "echo the timeout",
        "printf '%s' x",
    ],
)
def test_portable_shell(line: str) -> None:
    assert list(in_shell("x.sh", line)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open('/proc/self/stat')", ["/proc"]),
        ("import os\nos.sched_getaffinity(0)", ["Linux call"]),
        ("from os import memfd_create", ["Linux call"]),
        ("import socket\nsocket.SOCK_CLOEXEC", ["Linux constant"]),
        ("run(['timeout', '5', 'ls'])", ["Linux program"]),
        ("state = ('timeout', 'failed')", []),
        ('"Reads /proc."', []),
        ("mine.splice()", []),
    ],
)
def test_python(text: str, found: list[str]) -> None:
    assert [each.rule for each in in_python("src/yurt/cli/x.py", text)] == found


def test_scripts_in_modules() -> None:
    text = "PUT = 'cat > x && mv -T x y'"
    assert [each.rule for each in in_python("src/yurt/transport/x.py", text)] == ["mv -T"]
