"""What samples for the policy server; one file per engine."""
