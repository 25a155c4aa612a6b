"""Features and models that come and go: imports, exports, audits, pushes and pulls."""
