"""Small models with any norm and many seeds at once: majority, lm, sentiment."""
from ._questions import lm, majority, sentiment

__all__ = ["lm", "majority", "sentiment"]
