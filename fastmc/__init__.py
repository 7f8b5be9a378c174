"""fastmc: certified linear multi-class classifiers."""
__version__ = "0.1.0"
