"""Published lists, in which sites announce their changes: feeds, sitemaps and schedules, and how they are discovered."""
