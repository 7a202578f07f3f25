"""Who runs yurt."""

from __future__ import annotations

import os


def person() -> str:
    """Return the name of the user who runs yurt."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return os.environ.get("USER", str(os.getuid()))
