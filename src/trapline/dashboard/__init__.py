"""A crawl in the browser: a server that reads crawl folders, and its pages.

The server is always a process of its own. It reads the files of a crawl, and sends actions as the command line does; it shares no memory
with the crawl, and imports no compiled code.
"""
