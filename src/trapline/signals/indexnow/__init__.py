"""IndexNow: parsing of its requests, and proof that a sender owns the site."""
