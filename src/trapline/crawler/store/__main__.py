"""`python -m trapline.crawler.store FOLDER SETTINGS`: how client.py starts the store. Not for users."""

import sys
from pathlib import Path

from trapline.crawler.store.process import main
from trapline.crawler.store.settings import StoreSettings
from trapline.terminal import guard_stderr

if __name__ == "__main__":
    guard_stderr()  # the store shares stderr with the crawl, and an error of the store may quote a URL
    sys.exit(main(Path(sys.argv[1]), StoreSettings.from_json(sys.argv[2])))
