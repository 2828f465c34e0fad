"""HTML: links, robots directives and content fingerprint of a page, found by a compiled tokenizer that builds no tree."""
