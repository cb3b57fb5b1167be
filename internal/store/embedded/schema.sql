-- Tables of a Hostler store. Times are milliseconds since 1970, 0 = never.
-- Proxies, targets, workers and leases have a number n, whose upper half is the
-- number of their pool; tables join by it: proxy JOIN proxy_judge USING (n).
-- One whole number as the key, because finding a row by it costs half of what a
-- key of two columns does (README.md).
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE pool (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
  file TEXT NOT NULL,       -- settings from the configuration file, JSON
  overrides TEXT NOT NULL,  -- settings edited over them, JSON
  policy TEXT NOT NULL      -- the policy that follows, JSON
);

CREATE TABLE pool_total (
  pool INTEGER PRIMARY KEY, now INTEGER NOT NULL, credit REAL NOT NULL, totals TEXT NOT NULL,
  offline TEXT NOT NULL -- the circuit that is open while nobody reaches anything, JSON
);

CREATE TABLE proxy ( -- what lists and operators say
  n INTEGER PRIMARY KEY, id TEXT NOT NULL,
  scheme TEXT NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, username TEXT NOT NULL, password TEXT NOT NULL,
  region TEXT NOT NULL, grp TEXT NOT NULL, source TEXT NOT NULL, labels TEXT NOT NULL, exit TEXT NOT NULL,
  cap INTEGER NOT NULL, expires_at INTEGER NOT NULL, added_at INTEGER NOT NULL,
  ordered TEXT NOT NULL, ordered_until INTEGER NOT NULL, ordered_reason TEXT NOT NULL, removing INTEGER NOT NULL
);

CREATE TABLE proxy_use ( -- what every use changes: the mechanics' counts, and what was seen
  n INTEGER PRIMARY KEY, uses INTEGER NOT NULL, fence INTEGER NOT NULL, last_start INTEGER NOT NULL,
  last_end INTEGER NOT NULL, score REAL NOT NULL, idle_score REAL NOT NULL, score_until INTEGER NOT NULL,
  gated_until INTEGER NOT NULL, last_class TEXT NOT NULL, last_report INTEGER NOT NULL, bytes INTEGER NOT NULL,
  recent BLOB, windows BLOB
);

CREATE TABLE proxy_judge ( -- what the judge holds
  n INTEGER PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL,
  streak INTEGER NOT NULL, level INTEGER NOT NULL, level_at INTEGER NOT NULL, trials INTEGER NOT NULL,
  suspensions INTEGER NOT NULL, orphans INTEGER NOT NULL, orphan_many INTEGER NOT NULL, orphan_worker INTEGER NOT NULL,
  until_failure INTEGER NOT NULL, until_rate INTEGER NOT NULL, until_policy INTEGER NOT NULL, until_geo INTEGER NOT NULL,
  fail_fence INTEGER NOT NULL, earned INTEGER NOT NULL, earned_ok INTEGER NOT NULL,
  doubt TEXT -- healthy targets on which it failed lately, JSON
);

CREATE TABLE pair ( -- one proxy on one target; the columns from version on are NULL when nothing is charged
  n INTEGER PRIMARY KEY, target INTEGER NOT NULL, proxy INTEGER NOT NULL, next_ok INTEGER NOT NULL, epoch INTEGER NOT NULL, failed INTEGER NOT NULL,
  version INTEGER, until_failure INTEGER, until_rate INTEGER, until_policy INTEGER, until_geo INTEGER,
  streak INTEGER, level INTEGER, level_at INTEGER, rate_steps INTEGER, fail_fence INTEGER, rate_fence INTEGER,
  touched INTEGER, provisional INTEGER
);

CREATE TABLE target (
  n INTEGER PRIMARY KEY, name TEXT NOT NULL, last_used INTEGER NOT NULL,
  epoch INTEGER NOT NULL, votes_ok INTEGER NOT NULL, votes_failed INTEGER NOT NULL, votes_leases INTEGER NOT NULL,
  requests INTEGER NOT NULL, bytes INTEGER NOT NULL, cost INTEGER NOT NULL, -- ever; cost in billionths of the currency
  day INTEGER NOT NULL, day_requests INTEGER NOT NULL, day_bytes INTEGER NOT NULL, day_cost INTEGER NOT NULL,
  month INTEGER NOT NULL, month_requests INTEGER NOT NULL, month_bytes INTEGER NOT NULL, month_cost INTEGER NOT NULL,
  judge TEXT NOT NULL, -- verdict, evidence, pace and outages, JSON
  classes TEXT NOT NULL, windows BLOB
);

CREATE TABLE grp (
  pool INTEGER, name TEXT, hold_until INTEGER NOT NULL, hold_steps INTEGER NOT NULL,
  requests INTEGER NOT NULL, bytes INTEGER NOT NULL, cost INTEGER NOT NULL, -- as in target
  day INTEGER NOT NULL, day_requests INTEGER NOT NULL, day_bytes INTEGER NOT NULL, day_cost INTEGER NOT NULL,
  month INTEGER NOT NULL, month_requests INTEGER NOT NULL, month_bytes INTEGER NOT NULL, month_cost INTEGER NOT NULL,
  circuit TEXT NOT NULL, -- open while a guard holds the group, JSON
  classes TEXT NOT NULL, windows BLOB,
  PRIMARY KEY (pool, name)
) WITHOUT ROWID;

CREATE TABLE worker (
  n INTEGER PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT NULL, concurrency INTEGER NOT NULL,
  last_seen INTEGER NOT NULL, note_seq INTEGER NOT NULL, granted INTEGER NOT NULL, reported INTEGER NOT NULL,
  released INTEGER NOT NULL, expired INTEGER NOT NULL, last_lease INTEGER NOT NULL, windows BLOB
);

CREATE TABLE session (
  pool INTEGER, key TEXT, proxy INTEGER NOT NULL, proxy_id TEXT NOT NULL, child TEXT NOT NULL,
  last_used INTEGER NOT NULL, gone INTEGER NOT NULL, -- 1: its proxy or child is not to be used again, 2: by an operator's order
  PRIMARY KEY (pool, key)
) WITHOUT ROWID;

CREATE TABLE lease ( -- live ones, and for two minutes those that ended
  n INTEGER PRIMARY KEY, key BLOB NOT NULL, proxy INTEGER NOT NULL, target INTEGER NOT NULL, worker INTEGER NOT NULL,
  granted INTEGER NOT NULL, deadline INTEGER NOT NULL, hard INTEGER NOT NULL, ttl INTEGER NOT NULL, fence INTEGER NOT NULL,
  rest_end INTEGER NOT NULL, gap INTEGER NOT NULL, band INTEGER NOT NULL,
  ended INTEGER NOT NULL, kind TEXT, class TEXT, late INTEGER NOT NULL,
  call_id TEXT NOT NULL, tenant TEXT NOT NULL, digest INTEGER NOT NULL, session TEXT NOT NULL, child TEXT NOT NULL,
  moved INTEGER NOT NULL, previous TEXT NOT NULL, relaxed INTEGER NOT NULL,
  fingerprint TEXT NOT NULL, url TEXT NOT NULL, method TEXT NOT NULL, attempt INTEGER NOT NULL
);

CREATE TABLE failure (
  n INTEGER PRIMARY KEY AUTOINCREMENT, pool TEXT NOT NULL, at INTEGER NOT NULL, worker TEXT NOT NULL,
  target TEXT NOT NULL, proxy TEXT NOT NULL, lease TEXT NOT NULL, class TEXT NOT NULL, fault TEXT NOT NULL, phase TEXT NOT NULL,
  error TEXT NOT NULL, status INTEGER NOT NULL, elapsed INTEGER NOT NULL, fingerprint TEXT NOT NULL,
  url TEXT NOT NULL, method TEXT NOT NULL, attempt INTEGER NOT NULL, final INTEGER NOT NULL,
  reason TEXT NOT NULL, attempts TEXT NOT NULL, waited INTEGER NOT NULL
);

CREATE TABLE token (
  name TEXT PRIMARY KEY, role TEXT NOT NULL, hash BLOB NOT NULL, created INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit ( -- what operators did; 90 days or 100,000
  n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  who TEXT NOT NULL,    -- the token's name, empty without tokens
  peer TEXT NOT NULL,   -- the caller's address
  act TEXT NOT NULL, pool TEXT NOT NULL, what TEXT NOT NULL,
  count INTEGER NOT NULL, -- how many records it touched
  result TEXT NOT NULL
);

CREATE TABLE source ( -- where proxies come from by themselves
  name TEXT PRIMARY KEY, version INTEGER NOT NULL,
  settings TEXT NOT NULL,  -- as the configuration file writes them, JSON; credentials stay in the environment
  state TEXT NOT NULL,     -- how it fares, JSON
  held BLOB                -- a list that waits for a word
);
