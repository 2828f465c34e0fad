"""The robots.txt of every site: when it is fetched, how long it is valid, and what it forbids now."""
