"""What the command line imports late behaves as Python's own import does."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from yurt import quoting

LEAN = "import yurt.__main__ as m; m.lean_imports.postpone_re()\n"


def python(program: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


@given(st.text(alphabet="aZ9_@%+=:,./-é '\"$\n\\", max_size=8))
def test_quoting_is_that_of_shlex(text: str) -> None:
    assert quoting.quote(text) == shlex.quote(text)
    assert quoting.join([text, "b c"]) == shlex.join([text, "b c"])


def test_re_is_imported_when_it_is_used() -> None:
    program = (
        f"{LEAN}import sys, typing, re\n"
        "assert 're._compiler' not in sys.modules\n"
        "first = re.compile\n"
        "assert first('a+').fullmatch('aa') and isinstance(re.compile('a'), re.Pattern)\n"
        "assert re.sub('a', 'b', 'aa', flags=re.IGNORECASE) == 'bb'\n"
        "assert typing.Pattern[str].__origin__ is re.Pattern and isinstance(re.match('', ''), re.Match)\n"
        "import re as real\n"
        "assert real.error is re.error and sys.modules['re'] is not re\n"
    )
    python(program)


def test_modules_that_msgspec_does_without() -> None:
    program = (
        f"{LEAN}m.lean_imports.load_msgspec()\n"
        "import datetime, decimal, fnmatch, msgspec, ntpath, pickle, signal, uuid\n"
        "assert decimal.Decimal('1.5') * 2 == 3 and uuid.uuid4().version == 4\n"
        "assert signal.Signals(signal.SIGTERM).name == 'SIGTERM' and ntpath.basename(r'a\\b') == 'b'\n"
        "assert fnmatch.fnmatch('a.py', '*.py')\n"
        "now = datetime.datetime.now(datetime.timezone.utc)\n"
        "assert pickle.loads(pickle.dumps(now)) == now\n"
        "assert msgspec.json.decode(msgspec.json.encode(now), type=datetime.datetime) == now\n"
    )
    python(program)
