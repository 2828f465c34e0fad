"""A job: freshness, refetches, signals and trust of a crawl that refetches pages, as its report shows them."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from trapline.crawler.inspect.database_reader import open_database, options
from trapline.dashboard.jobs import answer_with
from trapline.errors import ConfigError
from trapline.parallel.folder.merged import brought_up
from trapline.report.refresh_record import Believed, SignalCount, refresh_record

_MOST_TRUST = 200


def refresh(folder: str) -> dict[str, Any]:
    path = Path(folder)
    with closing(open_database(brought_up(path))) as database:
        settings = options(database).refresh
        if settings is None:
            raise ConfigError(
                "the crawl fetches every page once; start it with --refresh or --continuous to refetch pages"
            )
        record = refresh_record(path, database, settings)
    return {
        "policy": settings.policy,
        "continuous": settings.continuous,
        "freshness": {name: values.tolist() for name, values in record.fresh._asdict().items()},
        "fetches": {name: values.tolist() for name, values in record.fetches._asdict().items()},
        "signals": [_signal(count) for count in record.signals],
        "access_counts": [_signal(count) for count in record.access_counts],
        "trust": [_trust(believed) for believed in record.trust[:_MOST_TRUST]],
        "due": {**record.due._asdict(), "best": [page._asdict() for page in record.due.best]},
    }


def _signal(count: SignalCount) -> dict[str, Any]:
    return {"channel": count.channel, "outcome": count.outcome, "signals": int(count.signals)}


def _trust(believed: Believed) -> dict[str, Any]:
    return {"origin": believed.origin, **believed.trust._asdict()}


if __name__ == "__main__":
    sys.exit(answer_with(refresh))
