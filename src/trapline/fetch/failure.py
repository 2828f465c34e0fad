"""Why a page was not had: one word each, for records, counts and reports. Failures are values here; nothing raises them."""

DNS = "dns"  # the name has no address, or nobody answered
ADDRESS = "address"  # the address is not a public one (fetch/address.py)
CONNECT = "connect"  # refused, unreachable, or too slow to connect
TLS = "tls"
CLOSED = "closed"  # the connection ended before the answer did
TIMEOUT = "timeout"  # to the first byte, or in all
PROTOCOL = "protocol"  # not HTTP as we understand it
TOO_LARGE = "too-large"  # its headers
ENCODING = "encoding"  # a content coding that is unknown, broken, or expands too far
ROBOTS = "robots"  # robots.txt does not allow it: no request was made
HTTP = "http"  # an answer, of 400 or above
STOPPED = "stopped"  # we gave it up: the crawl was stopped

KINDS = (DNS, ADDRESS, CONNECT, TLS, CLOSED, TIMEOUT, PROTOCOL, TOO_LARGE, ENCODING, ROBOTS, HTTP, STOPPED)
