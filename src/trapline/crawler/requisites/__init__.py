"""Requisites of pages: stylesheets, images, scripts and the like, which a crawl with --requisites fetches besides its pages."""
