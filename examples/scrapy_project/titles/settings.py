"""Settings of the project. docs/how-to/scrapy.md explains those of Trapline."""

BOT_NAME = "titles"
SPIDER_MODULES = ["titles.spiders"]
ROBOTSTXT_OBEY = True

# The order of the pages, and the delays of sites and of IP addresses.
SCHEDULER = "trapline.scrapy.Scheduler"
TRAPLINE_STRATEGY = "crawl-ability"
TRAPLINE_QUALITY = "titles.quality.of_request"
DOWNLOAD_DELAY = 1  # seconds between two visits to a site
CONCURRENT_REQUESTS = 64  # to all sites together
