"""Archives a site with all that its pages need, and lists what is missing: python examples/archive_a_site.py https://example.org/ FOLDER

FOLDER then has WARC files and an index, which pywb can show (docs/how-to/archive-a-site.md).
"""

import sys

import trapline

url, folder = sys.argv[1:]
summary = trapline.crawl(url, output=folder, archive=True).run()
for file in trapline.open_crawl(folder).table("requisites").to_pylist():
    if file["state"] not in ("fetched", "with links"):
        print(f"{file['state']}\t{file['url']}\tneeded by {file['needed_by']}")
print(f"{summary['pages_fetched']:,} pages and {summary['requisites_fetched']:,} files in {folder}", file=sys.stderr)
