-- Times are nanoseconds since 1970.

CREATE TABLE runs (
	id          TEXT PRIMARY KEY,
	started     INTEGER NOT NULL,
	elapsed     INTEGER NOT NULL, -- nanoseconds
	interrupted INTEGER NOT NULL,
	scenario    TEXT NOT NULL,
	verdict     TEXT NOT NULL, -- empty where there is none
	target      TEXT NOT NULL, -- URL, secrets masked
	kind        TEXT NOT NULL,
	server      TEXT NOT NULL,
	simulated   INTEGER NOT NULL,
	tool        TEXT NOT NULL,
	go          TEXT NOT NULL,
	labels      TEXT NOT NULL, -- a JSON object
	result      TEXT NOT NULL  -- contend.result/1
) STRICT;

CREATE INDEX runs_started ON runs (started);

-- A run that was killed has ghosts, and may have no row in runs.
CREATE TABLE ghosts (
	id      INTEGER PRIMARY KEY,
	run     TEXT NOT NULL,
	key     TEXT NOT NULL,
	arm     TEXT NOT NULL,
	target  TEXT NOT NULL,
	state   TEXT NOT NULL,
	closed  INTEGER NOT NULL,
	epoch   INTEGER NOT NULL, -- the start of the run
	due     INTEGER NOT NULL, -- when it is next asked about
	watched INTEGER NOT NULL, -- when its watch ends
	ghost   TEXT NOT NULL,    -- all of it, JSON
	UNIQUE (run, key)
) STRICT;

CREATE INDEX ghosts_epoch ON ghosts (epoch);
CREATE INDEX ghosts_open ON ghosts (target, due) WHERE closed = 0;

CREATE TABLE probes (
	ghost    INTEGER NOT NULL, -- the id there
	n        INTEGER NOT NULL, -- from 0
	exchange TEXT NOT NULL,    -- JSON, as in contend.record/1
	PRIMARY KEY (ghost, n)
) STRICT, WITHOUT ROWID;
