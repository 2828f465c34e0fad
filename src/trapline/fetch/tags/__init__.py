"""The tags of a page that can lead somewhere, found by compiled code. Step 6 of the way of a URL, its lower half."""
