"""A live crawl of several partitions: supervisor, coordinator, members, page budget, and the hand-over of sites between
partitions."""
