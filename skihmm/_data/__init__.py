"""From X to sequences: validation, data frames, given columns, wrong values."""
