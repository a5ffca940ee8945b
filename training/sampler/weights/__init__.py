"""The receiving end of a weight sync, in the policy server."""
