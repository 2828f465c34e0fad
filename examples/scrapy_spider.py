"""A Scrapy spider with Trapline's scheduler: scrapy runspider examples/scrapy_spider.py -a start=https://example.org/ -s JOBDIR=job

Needs trapline[scrapy]. The same command continues a crawl that was stopped or killed.
"""

import scrapy


class Titles(scrapy.Spider):
    name = "titles"
    custom_settings = {
        "SCHEDULER": "trapline.scrapy.Scheduler",
        "TRAPLINE_STRATEGY": "crawl-ability",
        "DOWNLOAD_DELAY": 1,
    }

    def __init__(self, start):
        super().__init__(start_urls=[start])

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")
