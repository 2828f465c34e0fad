"""A Scrapy project with Trapline's scheduler. In the folder that has scrapy.cfg:

scrapy crawl titles -a start=https://example.org/ -s JOBDIR=job -o titles.jsonl

The same command continues a crawl that was stopped or killed. `settings.py` chooses the order of the pages; the spider knows nothing of it.
"""
