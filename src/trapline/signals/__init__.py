"""What providers tell about their pages: pings, feeds, sitemaps and schedules, as facts with a channel. It decides nothing about crawling."""
