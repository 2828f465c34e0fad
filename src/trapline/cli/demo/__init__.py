"""`trapline demo`: the web that it serves, the crawls of that web, and which of their differences mean something."""
