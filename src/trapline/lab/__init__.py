"""The experiments of the papers, which `trapline reproduce` runs. Only the command line imports this package."""
