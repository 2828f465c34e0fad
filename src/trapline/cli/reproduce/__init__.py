"""`trapline reproduce`: reproduces the experiments of a paper, as tables and plots."""
