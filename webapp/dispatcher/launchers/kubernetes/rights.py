"""What the dispatcher has to be allowed in its namespace, and no more."""

RIGHTS = (
    ("get", "", "podtemplates", ""),
    ("create", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
    ("list", "", "events", ""),
)
"""(verb, API group, resource, subresource); `deploy/kubernetes/gpu-jobs.yaml` grants them."""
