"""The rows of a problem: designs, scaling, blocks (arrays, files, callables), validation, and sums of losses."""
