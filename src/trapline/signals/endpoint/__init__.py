"""The HTTP server that receives pings, hub deliveries and access counts from providers."""
