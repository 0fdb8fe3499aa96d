"""The rows of a problem: designs, scaling, blocks (memory, files, devices), validation, and sums of losses."""
