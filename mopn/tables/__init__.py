"""Tables: columns of numbers, categories and dates, with missing values, become the features of a network."""
