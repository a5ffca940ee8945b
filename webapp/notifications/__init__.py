"""What a team is notified about, and where: rules, and messages that are sent beside the dispatcher."""
