-- signals.db, format 2: signals of content providers about the pages of a crawl, and the state needed to receive them.
-- Times are wall-clock seconds since 1970. docs/signals.md describes each column.

create table meta (key text primary key, value text not null) without rowid;  -- format, created

create table signal (
    id integer primary key autoincrement,  -- order of arrival; never assigned twice, even after rows were deleted
    received real not null,
    channel integer not null,              -- index in inbox.CHANNELS
    url text not null,                     -- canonical
    kind text not null,                    -- changed, point or access
    moment real not null,
    p real not null,
    verified integer not null
);

create table topic (                       -- pages found by the crawl that name a WebSub hub
    url text primary key,
    hub text not null,
    found real not null
) without rowid;

create table tally (                       -- number of signals by outcome, and by hour of arrival
    hour integer not null,                 -- seconds since 1970
    channel text not null,
    outcome text not null,                 -- the constants in endpoint/intake.py
    signals integer not null,
    primary key (hour, channel, outcome)
) without rowid;

create table batch (                       -- batches of signals that must not be read twice: access logs
    digest text primary key,
    name text not null,
    at real not null,
    signals integer not null
) without rowid;

create table subscription (                -- WebSub
    callback text primary key,             -- last part of the callback URL; not guessable
    topic text not null,
    hub text not null,
    secret text not null,
    state text not null,                   -- wanted, asked, active, denied, leaving or ended
    next_try real not null,                -- when to send the hub the next request
    tries integer not null,                -- requests in a row without success
    expires real not null,                 -- end of the lease; 0: no lease
    why text not null                      -- reason of a denial, or of the last failed request
) without rowid;
create index subscription_by_topic on subscription (topic);

create table delivery (                    -- digests of received bodies, to recognise replays
    callback text not null,
    digest blob not null,
    at real not null,
    primary key (callback, digest)
) without rowid;

create table delivered_entry (             -- entries of the last delivery, which are not new in the next one
    callback text not null,
    entry blob not null,
    primary key (callback, entry)
) without rowid;
