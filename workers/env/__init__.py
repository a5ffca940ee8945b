"""The env worker: jobs, episodes, slots, people who take over."""
