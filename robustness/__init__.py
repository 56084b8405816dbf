"""Attacks on this package that are run for as long as one likes: mutated files, killed processes."""
