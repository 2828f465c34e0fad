"""The live crawl: one process that fetches pages politely, in the order that the frontier decides, and keeps them on disk."""
