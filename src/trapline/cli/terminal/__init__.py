"""What commands print while they run: progress, errors, the table of a comparison."""
