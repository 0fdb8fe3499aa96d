"""Models for other programs: C, ONNX and QUBO problems, in floats and in integers."""
