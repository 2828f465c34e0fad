"""What providers tell about their pages: pings, feeds, sitemaps, schedules, as facts with a channel. It decides nothing about crawling."""
