"""What a team has and decides: members, prices, rules, rewards, tasks, links."""
