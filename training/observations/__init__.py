"""The texts of a turn: accessibility trees written out for a policy, cut to their budgets."""
