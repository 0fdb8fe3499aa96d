"""Times: against peers, by waiting, and by the size of the data."""
