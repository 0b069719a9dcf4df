"""A file a page; each has ``ROUTES``."""
