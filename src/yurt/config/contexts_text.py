"""The text of a contexts file understood, and every fault in it told with its line."""

from __future__ import annotations

from pathlib import Path

from yurt.config import faults
from yurt.errors import UserError
from yurt.model.context import ContextsFile
from yurt.model.context_check import Fault, check_file


def parse(text: str, file: Path | str, *, skip: int = 0) -> ContextsFile:
    """What a text says. UserError tells every fault; the first `skip` lines are not counted as the user's."""
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
    """The slow way: every fault, with its line."""
    import yaml

    from yurt.config import yaml_text

    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        return faults.error(file, [Fault((), problem)], {(): max(1, line - skip)})
    except RecursionError:
        return faults.error(file, [Fault((), "nests too deeply")], {})
    wrong = check_file(document)[1]
    wrong += [
        Fault(path, f"stands twice, in lines {one - skip} and {two - skip}; keep one") for path, one, two in twice
    ]
    return faults.error(file, wrong, {path: max(1, line - skip) for path, line in lines.items()})
