"""Kinds of failed fetches, one word each, for records, counts and reports. Failures are values; nothing raises them."""

DNS = "dns"  # the name has no address, or no name server answered
ADDRESS = "address"  # the address is not public (address.py)
CONNECT = "connect"  # refused, unreachable, or too slow to connect
TLS = "tls"
CLOSED = "closed"  # the connection ended before the response did
TIMEOUT = "timeout"  # of the first byte, or of the whole response
PROTOCOL = "protocol"  # not HTTP as we understand it
TOO_LARGE = "too-large"  # the headers
ENCODING = "encoding"  # a content coding that is unknown, broken, or expands too far
MIME = "mime"  # a media type that the crawl does not want; the body was not read
ROBOTS = "robots"  # disallowed by robots.txt; no request was made
HTTP = "http"  # a response with a status of 400 or above
STOPPED = "stopped"  # abandoned, because the crawl was stopped

CONNECTION_REFUSED = "connection refused"  # the reason of CONNECT, in the words of the system, if nothing listens there
KINDS = (DNS, ADDRESS, CONNECT, TLS, CLOSED, TIMEOUT, PROTOCOL, TOO_LARGE, ENCODING, MIME, ROBOTS, HTTP, STOPPED)
