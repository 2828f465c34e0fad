"""The answers of the served web, as pure functions of the web, the request and the time: pages, redirects, robots.txt,
validators, and the files that sites publish about their changes."""
