"""The processes of a parallel crawl: supervisor, coordinator, members, page budget, and the hand-over of sites between
partitions. `parallel/folder/` has what they leave on disk."""
