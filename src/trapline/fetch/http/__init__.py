"""HTTP/1.1 client: connections, responses, headers, content codings, bandwidth limits."""
