"""The page of errors: exit codes, error codes, and the messages of each code."""

from __future__ import annotations

import re

from tools.reference.sources import raised
from yurt.errors import CODES

EXIT_CODES = """\
# Errors and exit codes

An error has a message (what is wrong and why), a hint (what to type next) and a code that programs can rely on. yurt
prints it on standard error as

```text
yurt: MESSAGE
  hint: HINT
```

or, with `--json`, on standard output as [an envelope](json.md).

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | a run did not complete |
| 2 | invalid usage or configuration |
| 3 | not found |
| 4 | the site could not be reached, or a timeout expired; safe to retry |
| 5 | the site or this machine rejected the operation |
| 70 | a bug in yurt |
| 130 | interrupted |

`yurt prune RUN` exits with code 5 if it keeps the run. `yurt shell` and `yurt lab shell` pass on the exit code of the
command that they run.

"""


def page() -> str:
    rows = "".join(f"| [`{code}`](#{code}) | {about} |\n" for code, about in CODES.items())
    sections = "".join(_section(code, about) for code, about in CODES.items())
    table = f"## Error codes\n\n| code | meaning |\n|---|---|\n{rows}\nUpper-case words stand for values.\n"
    return EXIT_CODES + table + sections


def _section(code: str, about: str) -> str:
    texts = dict.fromkeys(
        f"yurt: {each.message}" + (f"\n  hint: {each.hint}" if each.hint else "")
        for each in raised()
        if each.code == code and not re.fullmatch(r"[A-Z]+", each.message)  # known only at run time
    )
    block = "\n".join(texts)
    return f"\n### {code}\n\n{about}\n" + (f"\n```text\n{block}\n```\n" if texts else "")
