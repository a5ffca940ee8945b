"""The audit log: who did what to which object, and who saw which live screen."""
