"""robots.txt: the parser of RFC 9309, and the rules that follow from the response to its request."""
