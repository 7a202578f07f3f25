"""Parses the text of a contexts file and reports every fault with its line."""

from __future__ import annotations

from pathlib import Path

from yurt.config import faults
from yurt.errors import UserError
from yurt.model.context import ContextsFile
from yurt.model.context_check import Fault, check_file


def parse(text: str, file: Path | str, *, skip: int = 0) -> ContextsFile:
    """Parse a contexts file. UserError lists every fault; the first `skip` lines do not count in line numbers."""
    import yaml

    from yurt.config import yaml_text

    try:
        found, wrong = check_file(yaml_text.parse(text))
        if not wrong:
            return found
    except (yaml.YAMLError, RecursionError):
        pass
    raise _explained(text, file, skip)


def _explained(text: str, file: Path | str, skip: int) -> UserError:
    """Parse again with line numbers, which is slower, and return the error for all faults."""
    import yaml

    from yurt.config import yaml_text

    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        return faults.error(file, [Fault((), problem)], {(): max(1, line - skip)})
    except RecursionError:
        return faults.error(file, [Fault((), "is nested too deeply")], {})
    wrong = check_file(document)[1]
    wrong += [
        Fault(path, f"is set twice, in lines {one - skip} and {two - skip}; keep one") for path, one, two in twice
    ]
    return faults.error(file, wrong, {path: max(1, line - skip) for path, line in lines.items()})
