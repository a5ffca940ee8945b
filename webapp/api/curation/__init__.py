"""What the replay buffer offers beyond one entry at a time."""
