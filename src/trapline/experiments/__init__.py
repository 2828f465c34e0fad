"""The papers' experiments: what is run, and whether what a paper says of it holds. Numbers only; how they are shown is the command's
matter. One face a paper: `xu.py`, `cho.py`."""
