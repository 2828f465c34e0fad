"""TLS as a crawler uses it. Knows certificates and options, no connection. Part of step 5 of the way of a URL."""

import ssl


def tls_context(insecure: bool = False) -> ssl.SSLContext:
    """One for a whole crawl; it takes some milliseconds to make. `insecure`: any certificate will do."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    # Servers that end a body by closing often leave TLS without a farewell.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
