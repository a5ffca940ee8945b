"""Kubernetes: a Job per attempt, made from the PodTemplate that the operator keeps in the cluster."""
