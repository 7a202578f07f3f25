"""What Unison prints in batch mode, as seen from version 2.52, and what yurt reads in it."""

from __future__ import annotations

import os

from yurt.homes import output
from yurt.homes.outcomes import Skipped
from yurt.homes.output import Kept

OUT = b"""\
- ro/f\r      \rdeleted  <-?-> props      dd/f@@
local        : deleted
yurt-beta    : changed props      modified on 2026-11-17 at  4:02:09  size 2         ---------
         error            p/sock@@
path /home/p/sock has unknown file type
changed  ---->            bad\xff@@
deleted  ---->            new
line@@
         <---- props      ro@@
         <---- dir        dd (old)@@
deleted  <=?=>            gone\rthere@@
         <=?=> deleted    gone\n  here@@
file     ====>            sp  two ---> x@@
 42%  00:00 ETA\r               \r100%  00:00 ETA\r               \rFailed [rootdir/f]: Error in processing a transfer:
Permission denied [open(rootdir/.unison.f.tmp)]
100%  00:00 ETA\r               \rFailed [n
l]: No space left on device [write()]
""".replace(b"@@", b"  ")  # editors remove spaces at the end of a line

ERR = b"""\
Have a nice day.

yurt-side 0a1b local begun 2.52.1

yurt-side ffff beta locked 12 of another sync

yurt-side 0a1b beta begun 2.52.1
Looking for changes
Propagating updates
[CONFLICT] Skipping dd/f
  conflicting updates
[CONFLICT] Skipping a (1) (b
  contents changed on both sides
[ERROR] Skipping p/sock
  path /home/p/sock has unknown file type
[BGN] Updating file bad\xff from /a to //yurt-beta//b
[END] Updating file bad\xff
Saving synchronizer state
Synchronization incomplete at 04:07:35  (4 items transferred, 1 partially transferred, 3 skipped, 2 failed)
  skipped: dd/f (conflicting updates)
  skipped: a (1) (b (contents changed on both sides)
  skipped: p/sock (path /home/p/sock has unknown file type)
  skipped: gone\rthere (would delete a file with nodeletion or nodeletionpartial set)
  skipped: gone
  here (would delete a file with nodeletion or nodeletionpartial set)
  failed: rootdir/f
  failed: n
l
  partially transferred: dd (old)
"""


def test_a_sync_with_conflicts_and_failures() -> None:
    found = output.read(OUT, ERR, "0a1b")
    assert found.complete
    assert found.transferred == 4
    assert (found.to_server, found.to_client) == (3, 2)
    assert found.copied == [os.fsdecode(b"bad\xff"), "dd (old)", "sp  two ---> x"]
    assert found.skipped == [
        Skipped("dd/f", "conflicting updates"),
        Skipped("a (1) (b", "contents changed on both sides"),
    ]
    assert found.failed == [
        Skipped("rootdir/f", "Error in processing a transfer: Permission denied [open(rootdir/.unison.f.tmp)]"),
        Skipped("n\nl", "No space left on device [write()]"),
        Skipped("dd (old)", output.PARTLY),
    ]
    assert found.kept == [Kept("gone\rthere", by_server=True), Kept("gone\n  here", by_server=False)]
    assert [(each.place, each.word) for each in found.sides] == [("local", "begun"), ("beta", "begun")]


def test_nothing_to_do() -> None:
    found = output.read(b"", b"Reconciling changes\nNothing to do: replicas have not changed since last sync.\n", "0")
    assert found.complete
    assert (found.transferred, found.fatal) == (0, "")


def test_a_unison_that_gives_up() -> None:
    found = output.read(b"", b"Looking for changes\nFatal error: Lost connection with the server\n", "0")
    assert not found.complete
    assert found.fatal == "Lost connection with the server"
    assert output.read(b"", b"", "0").fatal == ""


def test_progress() -> None:
    assert output.percent(b" 42%  00:00 ETA\r     \r 57%  00:03 ETA\r") == 57
    assert output.percent(b"\\ some 100%  name\r") is None
