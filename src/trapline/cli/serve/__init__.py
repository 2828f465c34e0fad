"""`trapline serve`: services that other crawlers use, one file per service."""
