-- crawl.db, format 7. Append-only while a crawl runs, but for counts, `copy` and `told`, and for what is not kept for ever (forgetting.py); indexes are
-- made when it closes (closing.py).
-- Times are wall-clock seconds since 1970; durations are seconds. What each column means: docs/crawl-folder.md.

create table meta (key text primary key, value text not null) without rowid;  -- format, options (JSON), created, closed

create table site (id integer primary key, origin text not null);
create table address (id integer primary key, address text not null);          -- id: the frontier's group
create table page (id integer primary key, site integer not null, url text not null);

create table given_up (            -- sites that the crawl does not wait for
    site integer primary key,
    at real not null,
    kind text not null,            -- dns, address or visits
    why text not null
);
create table left_out (reason text primary key, links integer not null) without rowid;  -- so far

create table fetch (               -- one row for each time that a visit came to a page
    seq integer primary key,
    page integer not null,
    visit integer not null,
    address text not null,         -- of the server; '': it was not asked
    started real not null,
    first_byte_s real,             -- null: none came
    total_s real not null,
    result integer not null,       -- 3 fetched, 5 failed, 6 refused: frontier/layout.py; 0: no answer, by nobody's fault; -1: an errand; -2: its site failed
    status integer not null,       -- of HTTP; 0: no answer
    error text not null,           -- a kind of fetch/failure.py; '': nothing is wrong
    bytes integer not null,        -- of the body as received
    mime text not null,
    digest blob,                   -- SHA-1 of the body without transfer coding; null: no answer, or one that has none to have (304)
    marks integer not null,
    found integer not null,        -- links
    truncated text not null,
    file integer,                  -- of the WARC record, null: none
    offset integer,
    length integer,
    links blob not null default x'',  -- the pages it links to, as the frontier was told: their ids, int32, little-endian
    changed integer,               -- since our copy: 0, 1; null: not known
    fingerprint blob               -- of what people read, eight bytes; null: not known
);

create table copy (                -- what we have of a page; rows only in crawls that fetch pages again
    page integer primary key,
    fetched real not null,         -- when its body was asked for: the date of its record in the archive
    checked real not null,         -- when it was last seen to be as the server has it
    last_change real,              -- when it was first seen changed, the last time; null: never
    fingerprint blob not null,
    digest blob not null,          -- of its body, as in `fetch`
    etag blob not null,            -- to ask by the next time; empty: none
    modified blob not null,
    refused text not null          -- why it was not to be had the last time: http, robots; '': it was
);
create view change as              -- every change that was seen
    select fetch.page, page.url, fetch.started as at, fetch.fingerprint
    from fetch join page on page.id = fetch.page where fetch.changed = 1;

create table robots (              -- one row for each robots.txt that was asked for
    seq integer primary key,
    site integer not null,
    visit integer not null,
    address text not null,
    started real not null,
    first_byte_s real,
    total_s real not null,
    status integer not null,
    error text not null,
    bytes integer not null,
    body blob not null,
    file integer,
    offset integer,
    length integer
);

create table journal (             -- since the older of the last two snapshots; no batch is missing
    batch integer primary key,
    calls blob not null,           -- the frontier's log
    refresh blob not null          -- the refresher's
);

create table signal (              -- what became of the signals that providers sent, of the last 30 days
    id integer primary key,        -- in signals.db, after those of the ones before; below 0: read by the crawl itself
    page integer,                  -- null: the crawl knows no such page
    at real not null,
    channel text not null,
    kind text not null,
    outcome text not null
);

create table signal_total (        -- and of all that ever came
    channel text not null, kind text not null, outcome text not null, signals integer not null,
    primary key (channel, kind, outcome)
) without rowid;

create table told (                -- pages that a sitemap or a feed lists
    page integer primary key,
    by integer not null,           -- the page that lists it
    dated real                     -- the latest date of a change that stood there or in another list; null: none did
);

create table parcel (              -- for other partitions, until these have it: links, letters, and what became theirs when the crawl grew
    receiver integer not null, number integer not null, data blob not null,
    primary key (receiver, number)
) without rowid;
create table partition (           -- the others, if there are any
    id integer primary key,
    made integer not null default 0,      -- parcels for it so far
    received integer not null default 0,  -- parcels of its that we have
    ended integer not null default 0      -- 1: it has handed over all that became ours when the crawl grew
);

create table assigned (            -- hosts whose address had to be asked for: their owner goes by it
    host text primary key,
    address text not null          -- '': none was found
) without rowid;
create table elsewhere (           -- where pages of ours lead that others own: of each fetch, by the page and the visit
    page integer not null, visit integer not null,
    url text not null              -- '': as at the last fetch of the page that has others
);

create table progress (
    at real not null, seconds real not null, pages integer not null, errors integer not null, bytes integer not null,
    known integer not null, waiting integer not null, sites integer not null, active integer not null,
    quality real not null
);

create table warc (id integer primary key, name text not null, bytes integer not null);  -- bytes that are committed
create table cdxj (id integer primary key check (id = 1), bytes integer not null);
insert into cdxj values (1, 0);
