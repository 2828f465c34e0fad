"""Proofs that take minutes or hours, one module per section of docs/proof.md. `make proof` runs them at full size."""
