"""Trapline's scheduling for Crawlee: `BasicCrawler(request_manager=FrontierRequestManager(folder))`. docs/how-to/crawlee.md"""

from trapline.crawlee.request_manager import FrontierRequestManager

__all__ = ["FrontierRequestManager"]
