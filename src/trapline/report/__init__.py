"""What people look at: records of crawls, pictures of them, and a page that compares them. Reads what a crawl left; decides
and simulates nothing."""

from trapline.report.page import compare_page
from trapline.report.plot import orders_png, plots_png
from trapline.report.record import CrawlRecord, record_of

__all__ = ["CrawlRecord", "compare_page", "orders_png", "plots_png", "record_of"]
