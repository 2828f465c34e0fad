"""Reports for people: records of crawls, plots, and an HTML page that compares crawls.

This package reads what a crawl has written; it decides and simulates nothing.
"""

from trapline.report.page import compare_page
from trapline.report.plot import orders_png, plots_png
from trapline.report.record import CrawlRecord, record_of

__all__ = ["CrawlRecord", "compare_page", "orders_png", "plots_png", "record_of"]
