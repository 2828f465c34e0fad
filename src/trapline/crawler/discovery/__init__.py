"""From links to pages: URLs are resolved, checked against the scope, looked up among the known ones, and assigned to sites."""
