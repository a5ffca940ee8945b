"""docs/results.md, written from the last results: claims, figures, and the bars that were missed."""
