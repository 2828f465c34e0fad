"""Trapline's scheduling for Scrapy: `SCHEDULER = "trapline.scrapy.Scheduler"`. docs/how-to/scrapy.md"""

from trapline.scrapy.scheduler import Scheduler

__all__ = ["Scheduler"]
