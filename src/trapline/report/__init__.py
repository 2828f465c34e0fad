"""What people look at: records of crawls, and pictures of them. Reads what a crawl left; decides and simulates
nothing."""

from trapline.report.plot import orders_png
from trapline.report.record import CrawlRecord, record_of

__all__ = ["CrawlRecord", "orders_png", "record_of"]
