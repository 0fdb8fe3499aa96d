"""What the studies share: data, files that a restart continues, the runner, figures and processes."""
