"""A fit: checked parameters, starts, chains, their sweeps, files and observers."""
