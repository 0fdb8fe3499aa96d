"""Benchmarks of mopn on public data; each is a program: ``python -m benchmarks.<name> --help``."""
