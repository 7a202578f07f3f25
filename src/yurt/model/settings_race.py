"""The rows of the settings table about races. Pure and cheap to import."""

from __future__ import annotations

from yurt.model.settings_row import Row

RACE = (
    Row(
        key="race_address",
        site=True,
        example="alice@login.big.example",
        about="How other clusters reach this login host with ssh: [USER@]HOST[:PORT]. If set, it may decide races: for"
        " each race, a key that can do nothing but claim is added to your authorized_keys, until the race is over.",
        effect="lets jobs of other clusters ask this login host by ssh, with a key for each race",
    ),
    Row(
        key="race_keys",
        form="flag",
        site=True,
        example="true",
        about="Whether the key of a race may be on the disk of this site while the race lasts, so that jobs here can"
        " ask another cluster who was first. Default: false.",
        effect="keeps an ssh key for each race on the site's disk until the race is over",
    ),
    Row(
        key="race_wait",
        form="wait",
        site=True,
        example="2m",
        about="How long a job of a race waits on its node for a yurt command to say who was first, where it cannot ask"
        " itself; at most 2m. A number without a unit is in minutes; 0: not at all. Default: 2m.",
    ),
)
