"""What people do to what runs: queue, alarms, logs, fleet, control of desktops."""
