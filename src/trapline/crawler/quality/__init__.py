"""The quality of fetched pages from their content (`--quality content:NAME`): what scores a page, the process in which that happens,
and the pages of earlier runs that still have to be scored."""
