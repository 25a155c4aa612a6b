"""Features and models that come and go: imports, exports, audits, acceptance of older results, pushes and pulls."""
