"""Files with which the system starts the agent at login. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from xml.sax.saxutils import escape

SYSTEMD = """\
# Save as ~/.config/systemd/user/yurt-agent.service, then run: systemctl --user enable --now yurt-agent
[Unit]
Description=yurt agent

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60

[Install]
WantedBy=default.target
"""

LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- Save as ~/Library/LaunchAgents/yurt.agent.plist, then run: launchctl load -w and this path -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>yurt.agent</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
"""


def systemd(argv: Sequence[str]) -> str:
    """Return a systemd user unit that runs a command."""
    return SYSTEMD.format(command=" ".join(_systemd_word(word) for word in argv))


def _systemd_word(word: str) -> str:
    doubled = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{doubled}"' if quote(word) != word else doubled


def launchd(argv: Sequence[str]) -> str:
    """Return a launchd file that runs a command."""
    return LAUNCHD.format(words="\n".join(f"    <string>{escape(word)}</string>" for word in argv))
