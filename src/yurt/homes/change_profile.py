"""home profile: the Unison profile of the homes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from yurt.cli import render
from yurt.cli.declare import option, verb
from yurt.errors import UserError
from yurt.homes import config, profile
from yurt.homes import paths as home_paths
from yurt.homes.config import Homes
from yurt.homes.places import Place
from yurt.homes.unreadable import HOLD, SKIP
from yurt.model.result import Result


class HomeProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile: where it is, and its text with the current part of yurt."""

    place: str
    """The place on which Unison runs."""
    path: str
    """Where the profile is on that place."""
    text: str
    """Bytes that are not UTF-8 are replaced."""
    changed: bool = False
    """Whether `--edit` changed it."""


def show() -> Result[HomeProfile]:
    """Return the profile of the place on which Unison runs. Without homes in sync, the one that yurt would write."""
    place, path, text = _read()
    return _result(place, path, profile.merged(text))


def edit_profile(editor: Callable[[Path], None]) -> Result[HomeProfile]:
    """Let the user edit the profile, and bring yurt's part up to date. UserError: yurt's two lines are broken.

    A profile on a login host is edited as a copy; another change in the meantime is lost.
    """
    import tempfile

    place, path, text = _read()
    before = profile.merged(text)
    with tempfile.TemporaryDirectory(prefix="yurt-") as folder:  # a private folder
        file = Path(folder) / f"{place.homes.profile}.prf"
        file.touch(mode=0o600)
        file.write_bytes(before)
        editor(file)
        after = file.read_bytes()
    merged = profile.merged(after)
    if merged != text:
        profile.write(place, merged)
    return _result(place, path, merged, changed=merged != before)


def skip_unreadable(skip: bool) -> Result[HomeProfile]:
    """Set whether syncs skip files that cannot be read, with a warning, instead of failing; return the profile."""
    config.save(msgspec.structs.replace(home_paths.homes(), unreadable=SKIP if skip else HOLD))
    return show()


def _read() -> tuple[Place, str, bytes]:
    homes = config.load() or Homes()
    place = Place(profile.client_of(homes), homes)
    path, text = profile.read(place)
    return place, path, text


def _result(place: Place, path: str, text: bytes, *, changed: bool = False) -> Result[HomeProfile]:
    shown = text.decode(errors="replace")
    where = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Result(kind="home-profile", data=HomeProfile(place=place.name, path=where, text=shown, changed=changed))


EXAMPLES = ["yurt home profile", "yurt home profile --edit", "yurt home profile --path"]


@verb(examples=EXAMPLES, context_help="")
@option("--edit", is_flag=True, help="Open the profile in $VISUAL, $EDITOR or vi.")
@option("--path", is_flag=True, help="Print only where the profile is.")
@option(
    "--skip-unreadable/--no-skip-unreadable",
    "skip",
    default=None,
    help="Skip files that you cannot read, with a warning, or let a sync fail that has any (default).",
)
def profile_command(edit: bool, path: bool, skip: bool | None) -> int:
    """Show or edit the Unison profile: which files to sync, and how.

    The part between yurt's two lines is rewritten by yurt. Add lines of your own outside of it, for example
    `ignore = Path data`, or `ignorenot = Path .config` to include a hidden folder. They are kept. The profile is on
    this machine, or on the login host of the hub if this machine has no home in sync.

    While a file cannot be read, no sync is good, and runs that wait for one stay held. With --skip-unreadable, recorded
    in homes.yaml, such files are skipped with a warning.
    """

    if edit + path + (skip is not None) > 1:
        raise UserError("--edit, --path and --skip-unreadable cannot be combined", code="usage", hint="use one of them")
    if skip is not None:
        done = skip_unreadable(skip)
        words = "are skipped with a warning" if skip else "let a sync fail"
        return render.result(done, lambda: print(f"files that cannot be read {words}"))
    if edit:
        done = edit_profile(_open)
        what = "changed" if done.data.changed else "unchanged"
        return render.result(done, lambda: print(render.plain(f"{done.data.path} {what}")))
    found = show()

    def print_text() -> None:
        place = "" if found.data.place == "local" else f" on {found.data.place}"
        if path:
            print(render.plain(found.data.path))
        else:
            print(render.plain(f"# {found.data.path}{place}"))
            print("\n".join(render.plain(line) for line in found.data.text.splitlines()))

    return render.result(found, print_text, requested=True)


def _open(file: Path) -> None:
    from yurt.contexts.edit_command import open_editor

    open_editor(file)
