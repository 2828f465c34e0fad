"""Orders to a running crawl: taking and answering them, and what each does. The files that carry them: crawler/files/control_mailbox.py."""
