"""Tables: columns of numbers, categories and dates, with gaps, become the features of a network, and are named."""
