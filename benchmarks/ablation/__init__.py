"""What each constant of conditional gradient and of its oracles is worth: fits without it, and with twice as much."""
