"""The spider: it yields the title of every page, and follows all links within the host of the start URL and its subdomains."""

from urllib.parse import urlsplit

import scrapy


class Titles(scrapy.Spider):
    name = "titles"

    def __init__(self, start, *args, **kwargs):
        super().__init__(*args, start_urls=[start], allowed_domains=[urlsplit(start).hostname], **kwargs)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a", callback=self.parse)
