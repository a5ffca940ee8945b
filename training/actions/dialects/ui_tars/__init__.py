"""UI-TARS 1.5: thoughts, then calls after "Action:"."""
