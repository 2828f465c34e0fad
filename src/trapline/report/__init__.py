"""Reports for people: records of crawls, plots, and an HTML page that compares crawls.

This package reads what a crawl has written; it decides and simulates nothing.
"""

from typing import TYPE_CHECKING

from trapline.lazy_names import lazy_names

if TYPE_CHECKING:
    from trapline.report.page import compare_page
    from trapline.report.plot import orders_png, plots_png
    from trapline.report.record import CrawlRecord, record_of

__all__ = ["CrawlRecord", "compare_page", "orders_png", "plots_png", "record_of"]

# A simulated crawl needs its record, and no page or plot.
__getattr__ = lazy_names(
    __name__,
    {
        "trapline.report.page": ("compare_page",),
        "trapline.report.plot": (
            "orders_png",
            "plots_png",
        ),
        "trapline.report.record": (
            "CrawlRecord",
            "record_of",
        ),
    },
)
