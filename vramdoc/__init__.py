"""vramdoc: where the GPU memory of a PyTorch training step goes."""

__version__ = "0.1.0"
