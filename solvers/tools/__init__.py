"""Tools without mathematics: checks of options, threads, random generators, attributes computed once, tables."""
