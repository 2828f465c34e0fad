"""Messages between partitions: frames, message batches, and exactly-once delivery."""
