"""WebSub: subscriptions to hubs, and the deliveries of hubs."""
