"""The served web as data: its pages and links, the paths of its pages, the behaviour of its sites, its changes, and the
signals that its sites send. There is no clock, no socket and no text of an answer here."""
