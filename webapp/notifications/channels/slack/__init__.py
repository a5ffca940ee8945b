"""Incoming webhooks of Slack, and of servers that take the same (Mattermost, Rocket.Chat)."""
