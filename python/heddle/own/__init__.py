"""Ops of one's own: what a class declares, its bodies and kernels, a folder of such ops, and their checks."""
