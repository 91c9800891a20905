"""Runs single tests of a pytest suite on a null GPU, each in a fork of one process, and measures them."""
