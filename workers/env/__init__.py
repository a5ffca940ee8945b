"""The env worker: its job, rollouts, slots, people who take over."""
