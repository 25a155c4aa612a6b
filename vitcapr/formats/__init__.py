"""Every file on disk. A reader raises a ``UserError`` of one line where a file is missing or not of its format."""
