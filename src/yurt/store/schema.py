"""Tables of the index, and the changes of each later version."""

# Columns for lists are separate from the full records, so that thousands of runs are listed in a millisecond.
SCHEMA = """\
CREATE TABLE runs (
    id TEXT PRIMARY KEY, created REAL NOT NULL, context TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL,
    folder TEXT NOT NULL, state TEXT NOT NULL, final INTEGER NOT NULL, cancel INTEGER NOT NULL, mark TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_time ON runs (created);
CREATE INDEX unfinished ON runs (context, created, state, cancel) WHERE NOT final;
CREATE TABLE records (id TEXT PRIMARY KEY, run BLOB NOT NULL, status BLOB NOT NULL);
CREATE TABLE plans (id TEXT PRIMARY KEY, plan BLOB NOT NULL);
CREATE TABLE code (context TEXT, project TEXT, tree TEXT NOT NULL, PRIMARY KEY (context, project)) WITHOUT ROWID;
CREATE TABLE looks (context TEXT PRIMARY KEY, at REAL NOT NULL, answer BLOB NOT NULL) WITHOUT ROWID;
"""

RENAME_FIELDS = "rename fields"
"""A step that is not plain SQL: see older.py."""

LATER = [
    """\
CREATE TABLE retries (run TEXT PRIMARY KEY, of_run TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX by_retried ON retries (of_run);
""",
    """\
CREATE TABLE fetched (
    run TEXT, target BLOB, at REAL NOT NULL, outputs TEXT NOT NULL, checkpoints TEXT NOT NULL,
    PRIMARY KEY (run, target)
) WITHOUT ROWID;
CREATE TABLE gone (run TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE bad_nodes (
    context TEXT, node TEXT, at REAL NOT NULL, run TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (context, node)
) WITHOUT ROWID;
""",
    """\
CREATE TABLE notices (run TEXT PRIMARY KEY, how TEXT NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE to_mirror (
    run TEXT PRIMARY KEY, context TEXT NOT NULL, since REAL NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE mirror (
    run TEXT PRIMARY KEY, at REAL NOT NULL, out_size INTEGER NOT NULL, err_size INTEGER NOT NULL,
    metrics_size INTEGER NOT NULL, out BLOB NOT NULL, err BLOB NOT NULL, metrics BLOB NOT NULL, ending BLOB NOT NULL
);
CREATE TABLE parts (run TEXT PRIMARY KEY, at REAL NOT NULL, parts BLOB NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE sweeps (id TEXT PRIMARY KEY, size INTEGER NOT NULL, pending INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (
    sweep TEXT, task INTEGER, state TEXT NOT NULL, final INTEGER NOT NULL, status BLOB NOT NULL,
    PRIMARY KEY (sweep, task)
) WITHOUT ROWID;
""",
    # A refresh finds the open tasks of a sweep without reading the rows of finished ones.
    """\
ALTER TABLE sweeps ADD COLUMN over TEXT NOT NULL DEFAULT '';
UPDATE sweeps SET over = coalesce((SELECT group_concat(task) FROM tasks WHERE sweep = id AND final), '');
CREATE INDEX task_states ON tasks (sweep, state);
""",
    RENAME_FIELDS,
    """\
ALTER TABLE fetched ADD COLUMN work TEXT NOT NULL DEFAULT '';
ALTER TABLE fetched ADD COLUMN files BLOB NOT NULL DEFAULT x'';
""",
    # The order in which runs were made; `refused` is why one was rejected.
    """\
CREATE TABLE made (number INTEGER PRIMARY KEY, run TEXT NOT NULL DEFAULT '', refused TEXT NOT NULL DEFAULT '');
CREATE INDEX by_made ON made (run);
INSERT INTO made (run) SELECT id FROM runs ORDER BY created, id;
""",
    """\
CREATE TABLE uploads (
    context TEXT, digest TEXT, run TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (context, digest)
) WITHOUT ROWID;
""",
    # Runs whose site was never reached: their plans lack what only the site knows.
    """\
CREATE TABLE drafts (id TEXT PRIMARY KEY, draft BLOB NOT NULL);
""",
    # A race is a row of `runs`, and so is each of its candidates.
    """\
CREATE TABLE races (run TEXT PRIMARY KEY, race TEXT NOT NULL);
CREATE INDEX by_race ON races (race);
CREATE TABLE race_items (race TEXT, item INTEGER, holder TEXT NOT NULL, PRIMARY KEY (race, item)) WITHOUT ROWID;
CREATE TABLE open_races (race TEXT PRIMARY KEY) WITHOUT ROWID;
""",
    # Runs that are sent to MLflow when they have finished; `at` is 0 until then.
    """\
CREATE TABLE tracked (
    run TEXT PRIMARY KEY, uri TEXT NOT NULL, at REAL NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL,
    why TEXT NOT NULL, warned INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX to_track ON tracked (run) WHERE at = 0;
""",
    # Copies on lasting tiers; and which folders sites purge, with the state of the files that say so.
    """\
CREATE TABLE site_copies (
    run TEXT PRIMARY KEY, tier TEXT NOT NULL, path TEXT NOT NULL, at REAL NOT NULL, outputs TEXT NOT NULL,
    checkpoints TEXT NOT NULL, work TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE purge_rules (
    context TEXT, folder TEXT, days INTEGER NOT NULL, stamp TEXT NOT NULL, PRIMARY KEY (context, folder)
) WITHOUT ROWID;
""",
    # The expected start of runs; without `seconds`: the user delayed the run, so that its wait does not count.
    """\
CREATE TABLE estimates (
    run TEXT PRIMARY KEY, context TEXT NOT NULL, partition TEXT NOT NULL, at REAL NOT NULL, seconds REAL, low REAL,
    high REAL, clock REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_estimate ON estimates (context, at);
""",
    # A run is found by any of its names, and the runs of a context or project are listed, without reading all runs.
    """\
CREATE INDEX by_second_part ON runs (substr(id, instr(id, '-') + 1));
CREATE INDEX by_name ON runs (name, created) WHERE name != '';
CREATE INDEX by_context ON runs (context, created);
CREATE INDEX by_project ON runs (project, created);
CREATE INDEX by_job ON records (json_extract(CAST(status AS TEXT), '$.job'));
""",
]
"""Migrations, one per later version. A new index gets all of them; an old one those it lacks."""

VERSION = 1 + len(LATER)
