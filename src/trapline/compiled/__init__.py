"""Compiled functions: how kernels are declared, compiled, cached and passed arrays."""
