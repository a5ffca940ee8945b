"""What experiments measured, read: evaluations, lineage, alarms, costs, groups, series."""
