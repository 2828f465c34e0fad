-- signals.db, format 1: what providers told about the pages of a crawl, and what we need in order to be told.
-- Times are wall-clock seconds since 1970. What each column means: docs/signals.md.

create table meta (key text primary key, value text not null) without rowid;  -- format, created

create table signal (
    id integer primary key autoincrement,  -- the order in which they came; never given twice, also if rows are forgotten
    received real not null,
    channel integer not null,              -- its place in inbox.CHANNELS
    url text not null,                     -- canonical
    kind text not null,                    -- changed, point or access
    moment real not null,
    p real not null,
    verified integer not null
);

create table topic (                       -- what the crawl found that says where its hub is
    url text primary key,
    hub text not null,
    found real not null
) without rowid;

create table tally (                       -- what became of signals, by the hour in which they came
    hour integer not null,                 -- seconds since 1970
    channel text not null,
    outcome text not null,                 -- endpoint.py has them
    signals integer not null,
    primary key (hour, channel, outcome)
) without rowid;

create table batch (                       -- whole batches of signals that must not come in twice: access logs
    digest text primary key,
    name text not null,
    at real not null,
    signals integer not null
) without rowid;

create table subscription (                -- WebSub
    callback text primary key,             -- the last part of its address; nobody can guess it
    topic text not null,
    hub text not null,
    secret text not null,
    state text not null,                   -- wanted, asked, active, denied, leaving or ended
    next_try real not null,                -- when the hub is to be asked (again)
    tries integer not null,                -- that came to nothing, in a row
    expires real not null,                 -- of the lease; 0: there is none
    why text not null                      -- of denied, and of the last try that came to nothing
) without rowid;
create index subscription_by_topic on subscription (topic);

create table delivery (                    -- bodies that came, so that they are not taken again
    callback text not null,
    digest blob not null,
    at real not null,
    primary key (callback, digest)
) without rowid;

create table heard (                       -- entries of the last delivery: those are no news
    callback text not null,
    entry blob not null,
    primary key (callback, entry)
) without rowid;
