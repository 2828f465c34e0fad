-- crawl.db, format 10. While a crawl runs, rows are only appended, except for counts, `copy`, `listed_page` and `published_list`, and for old rows
-- that are deleted (crawler/store/database.py). Indexes are built when the crawl closes (crawler/store/keeper.py).
-- Times are wall-clock seconds since 1970; durations are seconds. docs/crawl-folder.md explains each column.

create table meta (key text primary key, value text not null) without rowid;  -- format, options (JSON), created, closed

create table site (id integer primary key, origin text not null);
create table address (id integer primary key, address text not null);          -- id: the frontier's group
create table page (id integer primary key, site integer not null, url text not null);

create table abandoned_site (      -- sites that the crawl does not wait for
    site integer primary key,
    at real not null,
    kind text not null,            -- dns, address, visits or blocked
    why text not null
);
create table rejected_link (reason text primary key, links integer not null) without rowid;  -- links rejected so far

create table fetch (               -- one row for each attempt of a visit to fetch a page
    seq integer primary key,
    page integer not null,
    visit integer not null,
    address text not null,         -- of the server; '': no request was sent
    started real not null,
    first_byte_s real,             -- null: no byte was received
    total_s real not null,
    -- 3 fetched, 5 failed, 6 refused: frontier/layout.py; 0: no answer, through no fault of page or site; -1: an out-of-band fetch;
    -- -2: its site failed
    result integer not null,
    status integer not null,       -- HTTP status; 0: no answer
    error text not null,           -- a kind of fetch/failure.py; '': no error
    bytes integer not null,        -- length of the body as received
    mime text not null,
    digest blob,                   -- SHA-1 of the body without transfer coding; null: no answer, or an answer without a body (304)
    marks integer not null,
    found integer not null,        -- number of links
    truncated text not null,
    file integer,                  -- archive of the WARC record; null: there is no record
    offset integer,
    length integer,
    links blob not null default x'',  -- ids of the pages it links to, as reported to the frontier: int32, little-endian
    changed integer,               -- whether the page has changed since our copy: 0 or 1; null: not known
    fingerprint blob               -- fingerprint of the visible text, eight bytes; null: not known
);

create table copy (                -- our copy of a page; rows only in crawls that refetch pages
    page integer primary key,
    fetched real not null,         -- when its body was requested: the date of its record in the archive
    checked real not null,         -- when it was last found to be the same as on the server
    last_change real,              -- when its latest change was detected; null: never changed
    fingerprint blob not null,
    digest blob not null,          -- of its body, as in `fetch`
    etag blob not null,            -- validator for the next conditional request; empty: none
    modified blob not null,        -- the same for Last-Modified
    refused text not null          -- why the last fetch was refused: http, robots; '': it was not
);
create view change as              -- every change that was detected
    select fetch.page, page.url, fetch.started as at, fetch.fingerprint
    from fetch join page on page.id = fetch.page where fetch.changed = 1;

create view link as                -- the links of each page at its last fetch with contents, one row each, without the blob `links`
    with recursive
        newest(seq) as (select max(seq) from fetch where result = 3 and status <> 304 group by page),
        -- A row of a recursive query holds a copy of its blob. Pieces of 64 links keep these copies small.
        piece(source, links, at) as (
            select page, links, 1 from newest join fetch using (seq) where length(links) > 0
            union all select source, links, at + 256 from piece where at + 256 <= length(links)
        ),
        id(source, ids, at) as (
            select source, substr(links, at, 256), 1 from piece
            union all select source, ids, at + 4 from id where at + 4 <= length(ids)
        ),
        -- Four bytes, the lowest first. `instr` is 0 for the digit 0, which is missing there.
        number(source, digits) as (select source, hex(substr(ids, at, 4)) from id),
        target(source, target) as (
            select source, instr('123456789ABCDEF', substr(digits, 1, 1)) * 16 + instr('123456789ABCDEF', substr(digits, 2, 1))
                + instr('123456789ABCDEF', substr(digits, 3, 1)) * 4096 + instr('123456789ABCDEF', substr(digits, 4, 1)) * 256
                + instr('123456789ABCDEF', substr(digits, 5, 1)) * 1048576 + instr('123456789ABCDEF', substr(digits, 6, 1)) * 65536
                + instr('123456789ABCDEF', substr(digits, 7, 1)) * 268435456 + instr('123456789ABCDEF', substr(digits, 8, 1)) * 16777216
            from number
        )
    select source, target, source_page.url as source_url, target_page.url as target_url
    from target join page as source_page on source_page.id = source join page as target_page on target_page.id = target;

create table robots (              -- one row for each request of a robots.txt
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

create table journal (             -- logs since the older of the last two snapshots; no batch is missing
    batch integer primary key,
    calls blob not null,           -- the frontier's log
    refresh blob not null          -- the refresher's log
);

create table signal (              -- signals of the last 30 days from content providers, and their outcomes
    id integer primary key,        -- id in signals.db, plus the last id of earlier inboxes; below 0: read by the crawl itself
    page integer,                  -- null: the crawl knows no such page
    at real not null,
    channel text not null,
    kind text not null,
    outcome text not null
);

create table signal_total (        -- counts of all signals ever received
    channel text not null, kind text not null, outcome text not null, signals integer not null,
    primary key (channel, kind, outcome)
) without rowid;

create table listed_page (         -- pages that a sitemap or a feed lists
    page integer primary key,
    by integer not null,           -- the page that lists it
    dated real                     -- the latest date of a change in this or another list; null: no list has a date
);

create table published_list (      -- sitemaps and feeds that the crawl knows
    page integer primary key,      -- the page with its URL
    named_by text not null,        -- robots.txt, guess, link, index, redirect or seed
    speaks_for text not null,      -- sites on whose hosts it may list any page; '': only pages of its folder; '*': all sites
    level integer not null,        -- number of indexes and redirects that lead to it
    requests integer not null,     -- requests besides those of pages
    state text not null,           -- waiting, read, page, missing, failed, forbidden, no list, site full
    entries integer not null,      -- entries that were admitted
    is_page integer not null,      -- 1: its URL is a page of the crawl as well; 0: it is requested besides pages, and is no page
    rejected text not null         -- JSON: number of other entries by reason
);

-- The tables `requisite` and `page_quality` are in layout.py, because they are added to the folders of earlier versions.

-- Messages for other partitions, until these have them: links, control messages, and what was handed over when the crawl grew.
create table message_batch (
    receiver integer not null, number integer not null, data blob not null,
    primary key (receiver, number)
) without rowid;
create table partition (           -- the other partitions, if there are any
    id integer primary key,
    made integer not null default 0,      -- message batches made for it so far
    urls integer not null default 0,      -- URLs of links in them
    received integer not null default 0,  -- message batches received from it
    ended integer not null default 0      -- 1: it has handed over all that became ours when the crawl grew
);

-- Links to pages of other partitions that wait: for the next exchange, or in mode cross-over until we have no own pages left.
create table pending_link (
    id integer primary key,        -- in the order in which the URLs were found
    url text not null unique,
    links integer not null,        -- number of links to the URL
    depth integer not null,        -- least depth of the pages that have these links
    share real not null            -- sum of what they hand on, such as OPIC cash
);

create table assigned (            -- hosts whose owner depends on their address, so that it had to be looked up
    host text primary key,
    address text not null          -- '': none was found
) without rowid;
create table foreign_link (        -- links from our pages to pages of other partitions, by page and visit of the fetch
    page integer not null, visit integer not null,
    url text not null              -- '': the same links as at the last fetch of the page that has rows with URLs
);

create table progress (
    at real not null, seconds real not null, pages integer not null, errors integer not null, bytes integer not null,
    known integer not null, waiting integer not null, sites integer not null, active integer not null,
    quality real not null
);

create table warc (id integer primary key, name text not null, bytes integer not null);  -- bytes: committed length
create table cdxj (id integer primary key check (id = 1), bytes integer not null);
insert into cdxj values (1, 0);
