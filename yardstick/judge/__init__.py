"""Decides which of two builds of hakmem is better, by work that nobody tuned it for."""
