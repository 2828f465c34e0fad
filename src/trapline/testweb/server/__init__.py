"""The server process: sockets, connections, the log of requests, and the pings that sites send."""
