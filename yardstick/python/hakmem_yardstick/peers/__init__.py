"""Allocators to compare with: which there are, where they come from, whether they are active."""
