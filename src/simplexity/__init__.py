"""Simplexity decodes sequence models by continuous optimisation on the probability simplex."""

__version__ = "0.1.0"
