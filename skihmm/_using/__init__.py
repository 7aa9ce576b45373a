"""Uses of frozen draws: decoding, predictions, filling, residuals, new subjects, live rows."""
