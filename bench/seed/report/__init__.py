"""Runs the seed set over several allocators and compares them."""
