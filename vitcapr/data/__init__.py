"""Data sets as users have them -> a manifest. What is wrong with their files is a ``UserError`` of one line."""
