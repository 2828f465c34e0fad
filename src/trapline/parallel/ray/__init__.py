"""Partitions as Ray actors on one or several machines."""
