"""Readers and writers of graph files, one module per format."""
