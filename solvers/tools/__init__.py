"""What is no mathematics: checks of options, threads, random generators, attributes computed once, tables."""
