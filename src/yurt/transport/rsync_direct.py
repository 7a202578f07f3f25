"""Copies files between two hosts with rsync on the first one, which reaches the second one by ssh."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shlex
from collections.abc import Sequence

from yurt.errors import YurtError
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.transport import rsync_copy, rsync_process
from yurt.transport.base import refusal
from yurt.transport.rsync_process import LOST, SILENCE, VANISHED, Strange
from yurt.transport.rsync_report import Report
from yurt.transport.side import SOURCE, Side

TOKEN = 'mkdir -p -- "$1" && umask 077 && printf %s "$3" > "$1/$2"'

PIPE = """\
shift
$shell "$address" "echo; echo $token; exec $*" | {
  while IFS= read -r line; do case $line in "$token") break ;; esac; done
  exec cat
}
"""
"""A remote shell for rsync: ssh, without what the other login prints before the command."""

DIRECT = (
    SOURCE
    + r"""
target=$1 address=$2 file=$3 token=$4 receive=$5 YURT_PIPE=$6
shift 6
[ "$kind" = file ] || end=/
if [ -z "$address" ]; then
  sh -c "$receive" yurt "$target" "$kind" || exit 3
  exec "$@" "$s" "$target$end"
fi
shell='ssh -o BatchMode=yes -o ConnectTimeout=3'
case $($shell "$address" "cat $file" 2> /dev/null < /dev/null) in *"$token") ;; *) exit 46 ;; esac
export shell address token YURT_PIPE
exec "$@" --blocking-io -e "sh -c 'eval \"\$YURT_PIPE\"' yurt" "--rsync-path=$receive $kind" "$s" "yurt:$target$end"
"""
)
"""Copies to another host, if ssh reaches it without a prompt and it is the right one: it has the file with the token.

Without an address: on the same host."""


def direct(source: Side, target: Side, manner: Manner, progress: Progress, *, address: str) -> Moved | None:
    """Copy between two hosts with rsync on the first one; None if it does not reach the other as `address`.

    An empty address: both are the same host. UnreachableError: a retry continues. Strange: one side has no rsync.
    """
    token, folder = os.urandom(16).hex(), posixpath.dirname(target.path) or "/"
    file = f".yurt-{token[:8]}"
    receive = target.guard + rsync_copy.RECEIVE
    if address:
        receive = rsync_copy.command(receive + 'exec rsync "$@"', target.path)
        made = target.host.run(target.guard + TOKEN, folder, file, token)
        if made.code:
            known = rsync_copy.refused(target.host, target.path, made.errors)
            raise known or refusal(target.host.name, f"cannot make the folder of '{target.path}'", made.errors)
    try:
        words = [target.path, address, shlex.quote(f"{folder}/{file}"), token, receive, PIPE]
        words += rsync_copy.options(manner)
        return _direct(source, target, words, progress, same=not address)
    finally:
        if address:
            with contextlib.suppress(YurtError):
                target.host.run('rm -f -- "$1"', f"{folder}/{file}")


def _direct(source: Side, target: Side, words: Sequence[str], progress: Progress, *, same: bool) -> Moved | None:
    report, held = Report(), b""
    with source.host.stream(DIRECT, source.path, *words, silence=SILENCE + 30) as stream:
        for chunk in stream:
            *lines, held = re.split(rb"[\r\n]+", held + chunk)
            for line in lines:
                report.read(line.decode(errors="replace"), progress)
        code, errors = stream.code or 0, stream.err.decode(errors="replace")
    if code in (0, VANISHED):
        return rsync_copy.moved(report, code, "rsync" if same else "rsync, directly")
    if "yurt: not-there" in errors:
        raise source.missing()
    if "yurt: no-rsync" in errors:
        raise Strange
    known = rsync_copy.refused(target.host, target.path, errors)
    if known is not None:
        raise known
    full = rsync_process.no_space(errors)
    if full:
        raise refusal(target.host.name, f"cannot write {target.path}", full)
    if not same and not report.files:
        return None  # such as a login that prints something
    if code in LOST:
        raise rsync_process.interrupted(target.host.name, "copied")
    raise refusal(source.host.name, "some files could not be copied", rsync_process.first_error(errors, code))
