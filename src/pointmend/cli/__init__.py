"""Command line: one thin module per command; the only room that prints."""
