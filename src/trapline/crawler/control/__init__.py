"""Actions on a running crawl: receives, executes and answers them. The files that carry them: crawler/files/control_mailbox.py."""
