"""The gpu worker: supervises one experiment's trainer and policy server; it never trains itself."""
