"""Thin jobs: load by id, call, report. Heavy imports happen inside the bodies."""

from workers.app import app


@app.task(name="workers.jobs.ping")
def ping(key: str = "") -> str:
    """Proof that a queue executes: sets a Redis key (60 s) that the asker polls."""
    if key:
        import redis
        from django.conf import settings

        redis.Redis.from_url(settings.REDIS_URL).set(key, "pong", ex=60)
    return "pong"


@app.task(name="workers.jobs.run_experiment")
def run_experiment(experiment_id: int, attempt_number: int) -> None:
    """Hold one experiment until it ends, pauses or crashes."""
    from workers.gpu.attempt import run

    run(experiment_id, attempt_number)


@app.task(name="workers.jobs.join_gang")
def join_gang(attempt_id: int, host: int) -> None:
    """Run this host's ranks of an experiment that is spread over several."""
    from workers.gpu.gang_member import run

    run(attempt_id, host)


@app.task(name="workers.jobs.run_trajectory")
def run_trajectory(trajectory_id: int) -> None:
    """Run one trajectory on this slot's desktop."""
    from workers.env.trajectory_job import run

    run(trajectory_id)
