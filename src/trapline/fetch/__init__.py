"""One request and its response: URLs, DNS, address checks, HTTP, HTML and robots.txt. The package knows nothing of crawls."""
