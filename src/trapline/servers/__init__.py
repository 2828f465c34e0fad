"""Descriptions of servers: how fast they answer, what they allow and how they fail. The simulator computes with them, and
the test web serves them over real sockets."""
