"""The API's operations. Written by scripts/write_client.py: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

from deskhand_client import models
from deskhand_client.transport import Transport, _segment


class Operations(Transport):
    """One method per operation of the API, named like it."""

    def show_me(self) -> models.Me:
        """Who the token or session belongs to."""
        return self._call("GET", "/me")

    def config_schema(self) -> dict[str, Any]:
        """JSON schema of an experiment config: every knob with its help text, bounds, unit and default."""
        return self._call("GET", "/config/schema")

    def list_presets(self) -> list[models.PresetOut]:
        """The named starting points."""
        return self._call("GET", "/config/presets")

    def list_experiments(
        self,
        *,
        status: models.ExperimentStatus | None = None,
        tag: str | None = None,
        archived: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.ExperimentPage:
        """Experiments of the current team, newest first; archived ones too unless `archived` says which."""
        return self._call(
            "GET",
            "/experiments",
            query={"status": status, "tag": tag, "archived": archived, "after": after, "limit": limit},
        )

    def launch_experiment(
        self,
        *,
        name: str,
        preset: str | None = None,
        config: dict[str, Any] | None = None,
        yaml: str | None = None,
        priority: int | None = None,
        note: str | None = None,
    ) -> models.ExperimentDetail:
        """Queue an experiment. A config that cannot run is refused with the field's name."""
        return self._call(
            "POST",
            "/experiments",
            body={
                "name": name,
                "preset": preset,
                "config": config,
                "yaml": yaml,
                "priority": priority,
                "note": note,
            },
        )

    def check_experiment(
        self,
        *,
        name: str,
        preset: str | None = None,
        config: dict[str, Any] | None = None,
        yaml: str | None = None,
        priority: int | None = None,
        note: str | None = None,
    ) -> models.PreflightOut:
        """What the launch page's panel says of it; queues nothing."""
        return self._call(
            "POST",
            "/experiments/preflight",
            body={
                "name": name,
                "preset": preset,
                "config": config,
                "yaml": yaml,
                "priority": priority,
                "note": note,
            },
        )

    def show_experiment(self, pk: int) -> models.ExperimentDetail:
        """One experiment with its stages, evaluations and config."""
        return self._call("GET", f"/experiments/{_segment(pk)}")

    def edit_experiment(
        self,
        pk: int,
        *,
        name: str | None = None,
        note: str | None = None,
        tags: list[str] | None = None,
        archived: bool | None = None,
    ) -> models.ExperimentDetail:
        """Rename, tag, annotate or archive; what is left out stays as it is."""
        return self._call(
            "PATCH",
            f"/experiments/{_segment(pk)}",
            body={"name": name, "note": note, "tags": tags, "archived": archived},
        )

    def delete_experiment(self, pk: int) -> None:
        """Delete an ended one; replay entries with a verdict and demonstrations stay with their groups."""
        return self._call("DELETE", f"/experiments/{_segment(pk)}")

    def show_metrics(
        self,
        pk: int,
        *,
        name: list[str] | None = None,
        from_step: int | None = None,
        to_step: int | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.MetricsPage:
        """Every point of the series named (of all when no `name` is given), `limit` points at a time:
        series by name, each by step. `next` is the `after` of the next page, in which a series
        may go on."""
        return self._call(
            "GET",
            f"/experiments/{_segment(pk)}/metrics",
            query={"name": name, "from_step": from_step, "to_step": to_step, "after": after, "limit": limit},
        )

    def cancel_experiment(self, pk: int) -> models.ExperimentDetail:
        """Stop it: at once when it waits, at the next safe point when it runs."""
        return self._call("POST", f"/experiments/{_segment(pk)}/cancel")

    def pause_experiment(self, pk: int) -> models.ExperimentDetail:
        """Finish the step, save a checkpoint, give the gpu worker back."""
        return self._call("POST", f"/experiments/{_segment(pk)}/pause")

    def resume_experiment(self, pk: int) -> models.ExperimentDetail:
        """Queue a paused or failed experiment again; it goes on from its last checkpoint."""
        return self._call("POST", f"/experiments/{_segment(pk)}/resume")

    def list_checkpoints(self, pk: int) -> list[models.CheckpointOut]:
        """Checkpoints, newest first, with every held-out result of their weights."""
        return self._call("GET", f"/experiments/{_segment(pk)}/checkpoints")

    def evaluate_checkpoint(
        self,
        pk: int,
        wanted: str,
        *,
        num_tasks: int | None = None,
        samples_per_task: int | None = None,
        temperature: float | None = None,
        greedy: bool | None = None,
    ) -> models.ExperimentRow:
        """Queue an evaluation of a checkpoint: best, latest, or its id. Answers the evaluating experiment."""
        return self._call(
            "POST",
            f"/experiments/{_segment(pk)}/checkpoints/{_segment(wanted)}/evaluate",
            body={
                "num_tasks": num_tasks,
                "samples_per_task": samples_per_task,
                "temperature": temperature,
                "greedy": greedy,
            },
        )

    def export_checkpoint(self, pk: int, wanted: str, *, dtype: str | None = None) -> models.ExportOut:
        """Write a checkpoint (best, latest, or its id) as a plain transformers folder."""
        return self._call(
            "POST",
            f"/experiments/{_segment(pk)}/checkpoints/{_segment(wanted)}/export",
            body={"dtype": dtype},
        )

    def show_export(self, pk: int, export_pk: int) -> models.ExportOut:
        """How far an export is."""
        return self._call("GET", f"/experiments/{_segment(pk)}/exports/{_segment(export_pk)}")

    def remove_export(self, pk: int, export_pk: int) -> None:
        """Delete its files; 409 while it is being written."""
        return self._call("DELETE", f"/experiments/{_segment(pk)}/exports/{_segment(export_pk)}")

    def download_export(self, pk: int, export_pk: int) -> Iterator[bytes]:
        """The folder of a finished one as one .tar; 409 where the web server does not see it."""
        return self._stream("GET", f"/experiments/{_segment(pk)}/exports/{_segment(export_pk)}/tar")

    def show_config(self, pk: int) -> models.ConfigText:
        """The whole config as YAML, as `launch_experiment` takes it."""
        return self._call("GET", f"/experiments/{_segment(pk)}/config")

    def list_alarms(self, pk: int) -> list[models.AlarmOut]:
        """Every guard that ever fired in it."""
        return self._call("GET", f"/experiments/{_segment(pk)}/alarms")

    def acknowledge_alarm(self, pk: int, name: str) -> models.AlarmOut:
        """It stops shouting until it was cleared and fires again."""
        return self._call("POST", f"/experiments/{_segment(pk)}/alarms/{_segment(name)}/acknowledge")

    def show_gpus(self, pk: int) -> dict[str, Any]:
        """Utilisation and memory of GPUs and processes over time, as the page's charts have them."""
        return self._call("GET", f"/experiments/{_segment(pk)}/gpus")

    def list_logs(self, pk: int) -> list[models.LogFileOut]:
        """Log files of its attempts, the newest attempt first."""
        return self._call("GET", f"/experiments/{_segment(pk)}/logs")

    def read_log(
        self, pk: int, name: str, *, after: int | None = None, at: Literal["", "first-error"] | None = None
    ) -> models.LogChunk:
        """Lines of one file: its end, from byte `after` on, or around the first error from there on."""
        return self._call(
            "GET", f"/experiments/{_segment(pk)}/logs/{_segment(name)}", query={"after": after, "at": at}
        )

    def export_trajectories(
        self,
        pk: int,
        *,
        purpose: Literal["", "train", "evaluation", "demonstration", "verification", "branch"] | None = None,
        shard: int | None = None,
        num_shards: int | None = None,
    ) -> Iterator[bytes]:
        """Ended trajectories as one Parquet shard that `datasets` opens: a row each, with screens and
        turns. `train` leaves out what a lost attempt sampled and no update used."""
        return self._stream(
            "GET",
            f"/experiments/{_segment(pk)}/trajectories",
            query={"purpose": purpose, "shard": shard, "num_shards": num_shards},
        )

    def list_queue(self) -> list[models.ExperimentRow]:
        """Waiting experiments of the current team in the order in which they run; at most 200."""
        return self._call("GET", "/queue")

    def set_priority(self, pk: int, *, priority: int) -> models.ExperimentRow:
        """Change the priority of one."""
        return self._call("POST", f"/experiments/{_segment(pk)}/priority", body={"priority": priority})

    def move_experiment(self, pk: int, *, before: int | None = None) -> models.ExperimentRow:
        """Put a queued one directly before another one, whose priority it takes, or at the end."""
        return self._call("POST", f"/experiments/{_segment(pk)}/move", body={"before": before})

    def cancel_many(self, *, ids: list[int]) -> models.CancelledOut:
        """Cancel several; `undo` takes it back for those that were waiting."""
        return self._call("POST", "/experiments/many/cancel", body={"ids": ids})

    def undo_cancel(self, *, undo: str) -> models.ManyOut:
        """Let those that were cancelled while they waited wait again."""
        return self._call("POST", "/experiments/many/cancel/undo", body={"undo": undo})

    def tag_many(self, *, ids: list[int], tag: str) -> models.ManyOut:
        """Put a tag on several."""
        return self._call("POST", "/experiments/many/tag", body={"ids": ids, "tag": tag})

    def archive_many(self, *, ids: list[int], archived: bool | None = None) -> models.ManyOut:
        """Take several out of the list, or put them back."""
        return self._call("POST", "/experiments/many/archive", body={"ids": ids, "archived": archived})

    def delete_many(self, *, ids: list[int]) -> models.ManyOut:
        """Delete several ended ones; replay entries with a verdict and demonstrations stay with their
        groups."""
        return self._call("POST", "/experiments/many/delete", body={"ids": ids})

    def launch_sweep(
        self,
        *,
        name: str,
        preset: str | None = None,
        config: dict[str, Any] | None = None,
        yaml: str | None = None,
        priority: int | None = None,
        note: str | None = None,
        axes: list[str] | None = None,
        plan: models.SearchSettings | None = None,
    ) -> models.SweepOut:
        """Begin a sweep. A plan or config that cannot run is refused with the field's name."""
        return self._call(
            "POST",
            "/sweeps",
            body={
                "name": name,
                "preset": preset,
                "config": config,
                "yaml": yaml,
                "priority": priority,
                "note": note,
                "axes": axes,
                "plan": plan,
            },
        )

    def show_sweep(self, pk: int) -> models.SweepOut:
        """One sweep with its arms."""
        return self._call("GET", f"/sweeps/{_segment(pk)}")

    def cancel_sweep(self, pk: int) -> models.SweepOut:
        """Cancel every experiment of it that has not ended."""
        return self._call("POST", f"/sweeps/{_segment(pk)}/cancel")

    def pause_sweep(self, pk: int) -> models.SweepOut:
        """Begin no arm any more; running experiments save a checkpoint."""
        return self._call("POST", f"/sweeps/{_segment(pk)}/pause")

    def resume_sweep(self, pk: int) -> models.SweepOut:
        """Go on with a paused one."""
        return self._call("POST", f"/sweeps/{_segment(pk)}/resume")

    def list_trajectories(
        self,
        *,
        experiment_id: int | None = None,
        group_id: int | None = None,
        status: models.TrajectoryStatus | None = None,
        purpose: models.Purpose | None = None,
        source: models.Source | None = None,
        family: str | None = None,
        finding: int | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.TrajectoryPage:
        """Trajectories of the current team, newest first."""
        return self._call(
            "GET",
            "/trajectories",
            query={
                "experiment_id": experiment_id,
                "group_id": group_id,
                "status": status,
                "purpose": purpose,
                "source": source,
                "family": family,
                "finding": finding,
                "after": after,
                "limit": limit,
            },
        )

    def show_trajectory(self, pk: int) -> models.TrajectoryDetail:
        """One trajectory with its turns, tokens, logprobs and reward breakdown."""
        return self._call("GET", f"/trajectories/{_segment(pk)}")

    def branch_trajectory(
        self,
        pk: int,
        *,
        turn: int,
        size: int | None = None,
        temperature: float | None = None,
        source: models.Source | None = None,
    ) -> models.BranchOut:
        """Continue it from the desktop's state before a turn; 409 names the field that is to blame."""
        return self._call(
            "POST",
            f"/trajectories/{_segment(pk)}/branches",
            body={"turn": turn, "size": size, "temperature": temperature, "source": source},
        )

    def show_tree(self, pk: int) -> list[models.TreeNode]:
        """The tree of branches that it belongs to."""
        return self._call("GET", f"/trajectories/{_segment(pk)}/tree")

    def list_snapshots(self, pk: int) -> list[models.SnapshotOut]:
        """The states that one can branch from, its parents' included."""
        return self._call("GET", f"/trajectories/{_segment(pk)}/snapshots")

    def keep_snapshots(self, pk: int, *, keep: bool) -> models.KeepIn:
        """Save the desktop before every turn from now on, or no more."""
        return self._call("POST", f"/trajectories/{_segment(pk)}/snapshots", body={"keep": keep})

    def list_groups(self, pk: int, *, after: str | None = None, limit: int | None = None) -> models.GroupPage:
        """Groups of an experiment, newest first."""
        return self._call(
            "GET", f"/experiments/{_segment(pk)}/groups", query={"after": after, "limit": limit}
        )

    def show_group(self, pk: int) -> models.GroupDetail:
        """One group with its members."""
        return self._call("GET", f"/groups/{_segment(pk)}")

    def compare_experiments(self, *, id: list[int]) -> models.ComparisonOut:
        """Two to six experiments of the current team in this order: success, what differs, tests task by
        task."""
        return self._call("GET", "/compare", query={"id": id})

    def read_frame(self, sha256: str, variant: Literal["png", "jpg", "thumb.jpg"]) -> Iterator[bytes]:
        """A screenshot that one of the caller's teams recorded: as the model saw it, as JPEG, or small."""
        return self._stream("GET", f"/frames/{_segment(sha256)}/{_segment(variant)}")

    def show_screen(self, pk: int) -> models.ScreenOut:
        """Who controls it, whether there is a screen, how it stands."""
        return self._call("GET", f"/trajectories/{_segment(pk)}/screen")

    def take_control(self, pk: int) -> models.ScreenOut:
        """Ask for control; it has to be renewed within 20 s, again and again. 409 names who has it."""
        return self._call("POST", f"/trajectories/{_segment(pk)}/control")

    def renew_control(self, pk: int) -> models.ScreenOut:
        """The person is still there."""
        return self._call("POST", f"/controls/{_segment(pk)}/renew")

    def hand_back_control(self, pk: int) -> models.ScreenOut:
        """Let the agent go on; a demonstration has none and is cancelled."""
        return self._call("POST", f"/controls/{_segment(pk)}/hand-back")

    def finish_control(
        self, pk: int, *, claim: Literal["success", "failure"] | None = None
    ) -> models.ScreenOut:
        """End the trajectory and have it evaluated."""
        return self._call("POST", f"/controls/{_segment(pk)}/finish", body={"claim": claim})

    def list_demonstration_desktops(self) -> list[models.OfferOut]:
        """Kinds of desktops that machines of the fleet can provide now."""
        return self._call("GET", "/demonstrations/desktops")

    def start_demonstration(self, *, task: int, desktop: str | None = None) -> models.ScreenOut:
        """Get a clean desktop with the task's set-up, and control of it."""
        return self._call("POST", "/demonstrations", body={"task": task, "desktop": desktop})

    def list_entries(
        self,
        *,
        verdict: models.Verdict | None = None,
        family: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.EntryPage:
        """Replay entries of the current team, newest first."""
        return self._call(
            "GET", "/replay", query={"verdict": verdict, "family": family, "after": after, "limit": limit}
        )

    def show_entry(self, pk: int) -> models.EntryRow:
        """One entry."""
        return self._call("GET", f"/replay/{_segment(pk)}")

    def label_entry(
        self,
        pk: int,
        *,
        verdict: str | None = None,
        tags: list[str] | None = None,
        note: str | None = None,
        expected_verdict: str | None = None,
        trim: bool | None = None,
    ) -> models.EntryRow:
        """Change verdict, tags or note; what is left out stays. 409 when another person changed it
        meanwhile."""
        return self._call(
            "POST",
            f"/replay/{_segment(pk)}/label",
            body={
                "verdict": verdict,
                "tags": tags,
                "note": note,
                "expected_verdict": expected_verdict,
                "trim": trim,
            },
        )

    def undo_label(self, pk: int) -> models.EntryRow:
        """Take back the caller's own last label of this entry."""
        return self._call("POST", f"/replay/{_segment(pk)}/undo")

    def show_replay_stats(self) -> list[models.CoverageRow]:
        """Entries by family and verdict."""
        return self._call("GET", "/replay/stats")

    def label_many(
        self,
        *,
        to: models.Verdict,
        expected: int,
        verdict: Literal["", "inbox", "accepted", "rejected", "gold", "all"] | None = None,
        family: str | None = None,
        experiment: int | None = None,
        age: Literal["", "hour", "day", "week"] | None = None,
        tag: str | None = None,
        search: str | None = None,
        finding: int | None = None,
        trim: bool | None = None,
    ) -> models.BulkOut:
        """One verdict for all entries of a filter, by default the inbox; one undo takes it back."""
        return self._call(
            "POST",
            "/replay/bulk",
            body={
                "verdict": verdict,
                "family": family,
                "experiment": experiment,
                "age": age,
                "tag": tag,
                "search": search,
                "finding": finding,
                "to": to,
                "expected": expected,
                "trim": trim,
            },
        )

    def undo_latest_label(self) -> models.UndoneOut:
        """Take back the caller's newest label in the team, or bulk change as a whole."""
        return self._call("POST", "/replay/undo")

    def export_entries(
        self,
        *,
        verdict: Literal["", "inbox", "accepted", "rejected", "gold", "all"] | None = None,
        family: str | None = None,
        experiment: int | None = None,
        age: Literal["", "hour", "day", "week"] | None = None,
        tag: str | None = None,
        search: str | None = None,
        finding: int | None = None,
        form: Literal["jsonl", "parquet", "atif"] | None = None,
        images: Literal["base64", "sha256"] | None = None,
        leave_out: bool | None = None,
    ) -> Iterator[bytes]:
        """Accepted and gold entries, or those of the filter, as a file."""
        return self._stream(
            "GET",
            "/replay/export",
            query={
                "verdict": verdict,
                "family": family,
                "experiment": experiment,
                "age": age,
                "tag": tag,
                "search": search,
                "finding": finding,
                "form": form,
                "images": images,
                "leave_out": leave_out,
            },
        )

    def list_clusters(
        self,
        *,
        verdict: Literal["", "inbox", "accepted", "rejected", "gold", "all"] | None = None,
        family: str | None = None,
        experiment: int | None = None,
        age: Literal["", "hour", "day", "week"] | None = None,
        tag: str | None = None,
        search: str | None = None,
        finding: int | None = None,
        keep: int | None = None,
        page: int | None = None,
    ) -> models.ClusterPageOut:
        """Clusters of near-identical entries, without rejected ones."""
        return self._call(
            "GET",
            "/replay/clusters",
            query={
                "verdict": verdict,
                "family": family,
                "experiment": experiment,
                "age": age,
                "tag": tag,
                "search": search,
                "finding": finding,
                "keep": keep,
                "page": page,
            },
        )

    def keep_best(
        self,
        *,
        keep: int,
        verdict: Literal["", "inbox", "accepted", "rejected", "gold", "all"] | None = None,
        family: str | None = None,
        experiment: int | None = None,
        age: Literal["", "hour", "day", "week"] | None = None,
        tag: str | None = None,
        search: str | None = None,
        finding: int | None = None,
        cluster: int | None = None,
    ) -> models.KeptOut:
        """Reject all but the best of a cluster, or of all; gold ones always stay, and one undo takes it
        back."""
        return self._call(
            "POST",
            "/replay/clusters/keep",
            body={
                "verdict": verdict,
                "family": family,
                "experiment": experiment,
                "age": age,
                "tag": tag,
                "search": search,
                "finding": finding,
                "keep": keep,
                "cluster": cluster,
            },
        )

    def try_policy(
        self,
        *,
        only_gold: bool | None = None,
        max_per_task: int | None = None,
        max_per_cluster: int | None = None,
        max_age: int | None = None,
        min_ratio: float | None = None,
        min_reward: float | None = None,
        without: list[str] | None = None,
    ) -> models.DryRunOut:
        """What rules would let in now; nothing is stored."""
        return self._call(
            "POST",
            "/replay/policies/try",
            body={
                "only_gold": only_gold,
                "max_per_task": max_per_task,
                "max_per_cluster": max_per_cluster,
                "max_age": max_age,
                "min_ratio": min_ratio,
                "min_reward": min_reward,
                "without": without,
            },
        )

    def list_policies(self) -> list[models.PolicyOut]:
        """Every version of the team's policies."""
        return self._call("GET", "/replay/policies")

    def save_policy(
        self,
        *,
        name: str,
        only_gold: bool | None = None,
        max_per_task: int | None = None,
        max_per_cluster: int | None = None,
        max_age: int | None = None,
        min_ratio: float | None = None,
        min_reward: float | None = None,
        without: list[str] | None = None,
        note: str | None = None,
    ) -> models.PolicyOut:
        """Keep rules as the next version of a name."""
        return self._call(
            "POST",
            "/replay/policies",
            body={
                "only_gold": only_gold,
                "max_per_task": max_per_task,
                "max_per_cluster": max_per_cluster,
                "max_age": max_age,
                "min_ratio": min_ratio,
                "min_reward": min_reward,
                "without": without,
                "name": name,
                "note": note,
            },
        )

    def list_buffer_snapshots(self) -> list[models.SnapshotOut]:
        """The newest 50."""
        return self._call("GET", "/replay/snapshots")

    def take_buffer_snapshot(self, *, policy: int, name: str) -> models.SnapshotOut:
        """Keep what a saved policy lets in now."""
        return self._call("POST", "/replay/snapshots", body={"policy": policy, "name": name})

    def list_reviews(self) -> list[models.ReviewOut]:
        """The newest 50 rounds."""
        return self._call("GET", "/replay/reviews")

    def start_review(
        self,
        *,
        name: str,
        people: list[str],
        num_labels: int | None = None,
        num_entries: int | None = None,
        num_checks: int | None = None,
        entries: models.Chosen | None = None,
    ) -> models.ReviewOut:
        """Give entries to people, each to several of them."""
        return self._call(
            "POST",
            "/replay/reviews",
            body={
                "name": name,
                "people": people,
                "num_labels": num_labels,
                "num_entries": num_entries,
                "num_checks": num_checks,
                "entries": entries,
            },
        )

    def show_review(self, pk: int) -> models.ReviewDetail:
        """Agreement, people and disagreements."""
        return self._call("GET", f"/replay/reviews/{_segment(pk)}")

    def show_next_review_label(self, pk: int) -> models.NextOut:
        """Which entry the caller labels next."""
        return self._call("GET", f"/replay/reviews/{_segment(pk)}/label")

    def submit_review_label(
        self, pk: int, *, label: int, verdict: models.Verdict, note: str | None = None
    ) -> models.ReviewOut:
        """Give the caller's own label; `undo` takes it back until the round is settled."""
        return self._call(
            "POST",
            f"/replay/reviews/{_segment(pk)}/label",
            body={"label": label, "verdict": verdict, "note": note},
        )

    def undo_review_label(self, pk: int) -> models.NextOut:
        """Take back the caller's last label: it is the next one to give. 409 once the round is settled."""
        return self._call("POST", f"/replay/reviews/{_segment(pk)}/undo")

    def settle_review_item(self, pk: int, *, item: int, verdict: models.Verdict) -> models.ReviewDetail:
        """Settle a disagreement."""
        return self._call(
            "POST", f"/replay/reviews/{_segment(pk)}/settle", body={"item": item, "verdict": verdict}
        )

    def list_guides(self) -> list[models.GuideOut]:
        """The newest 100 versions of the team's guidelines, the newest of each task set first."""
        return self._call("GET", "/replay/guides")

    def save_guide(self, *, task_set: str, text: str) -> models.GuideOut:
        """Keep the next version of the guidelines of a task set."""
        return self._call("POST", "/replay/guides", body={"task_set": task_set, "text": text})

    def show_turn_labels(self, pk: int) -> models.TurnLabelsOut:
        """Every rating of the turns of a trajectory."""
        return self._call("GET", f"/trajectories/{_segment(pk)}/turn-labels")

    def rate_turn(
        self,
        pk: int,
        *,
        turn: int,
        rating: Literal["good", "bad", "none"] | None = None,
        first_wrong: bool | None = None,
    ) -> models.TurnLabelsOut:
        """Rate a turn, or say that it was the first wrong one."""
        return self._call(
            "POST",
            f"/trajectories/{_segment(pk)}/turn-labels",
            body={"turn": turn, "rating": rating, "first_wrong": first_wrong},
        )

    def edit_entry(
        self,
        pk: int,
        *,
        first: int | None = None,
        last: int | None = None,
        context: list[int] | None = None,
        actions: dict[str, models.Action] | None = None,
    ) -> models.EditOut:
        """Trim an entry and correct its actions; an undo of its label takes it back."""
        return self._call(
            "PUT",
            f"/replay/{_segment(pk)}/edit",
            body={"first": first, "last": last, "context": context, "actions": actions},
        )

    def split_entry(self, pk: int, *, turn: int) -> models.EntryRow:
        """Split off the turns from one on; answers their entry. An undo of the first entry takes it back."""
        return self._call("POST", f"/replay/{_segment(pk)}/split", body={"turn": turn})

    def export_process_labels(self) -> Iterator[bytes]:
        """Every rating of the team's turns, one JSON line for each label of a trajectory."""
        return self._stream("GET", "/replay/process-labels")

    def import_process_labels(self, *, file: BinaryIO, origin: str) -> models.StoredOut:
        """Store ratings from such lines, all or none; `origin` names what made them."""
        return self._call("POST", "/replay/process-labels", files={"file": file}, form={"origin": origin})

    def list_scanners(self) -> list[models.ScannerOut]:
        """Shipped ones, then every version of the team's own, with their agreement with verdicts."""
        return self._call("GET", "/scanners")

    def save_scanner(
        self, *, name: str, definition: dict[str, Any], note: str | None = None
    ) -> models.ScannerOut:
        """Keep the next version of a name; older ones stay as they are."""
        return self._call("POST", "/scanners", body={"name": name, "definition": definition, "note": note})

    def show_scanner(self, scanner: str) -> models.ScannerOut:
        """One scanner, with its agreement with verdicts and with marks of turns."""
        return self._call("GET", f"/scanners/{_segment(scanner)}")

    def list_findings(
        self, scanner: str, *, after: str | None = None, limit: int | None = None
    ) -> models.FindingPage:
        """What it found, newest first."""
        return self._call(
            "GET", f"/scanners/{_segment(scanner)}/findings", query={"after": after, "limit": limit}
        )

    def preview_scan(self, scanner: str, *, slice: str | None = None) -> models.PreviewOut:
        """Number and cost of a scan; nothing is sent to a model."""
        return self._call("POST", f"/scanners/{_segment(scanner)}/preview", body={"slice": slice})

    def start_scan(
        self, scanner: str, *, max_read: int, slice: str | None = None, is_live: bool | None = None
    ) -> models.ScanOut:
        """Queue a scan. What the scanner has read is not read again."""
        return self._call(
            "POST",
            f"/scanners/{_segment(scanner)}/scans",
            body={"slice": slice, "max_read": max_read, "is_live": is_live},
        )

    def list_scans(self, *, after: str | None = None, limit: int | None = None) -> models.ScanPage:
        """Scans of the current team, newest first."""
        return self._call("GET", "/scans", query={"after": after, "limit": limit})

    def show_scan(self, pk: int) -> models.ScanOut:
        """How far it is."""
        return self._call("GET", f"/scans/{_segment(pk)}")

    def cancel_scan(self, pk: int) -> models.ScanOut:
        """Read nothing more; its findings stay. 409 when it has ended."""
        return self._call("POST", f"/scans/{_segment(pk)}/cancel")

    def list_imports(self, *, after: str | None = None, limit: int | None = None) -> models.ImportPage:
        """Imports of the current team, newest first."""
        return self._call("GET", "/replay/imports", query={"after": after, "limit": limit})

    def check_import(
        self,
        *,
        file: BinaryIO,
        task_set: str,
        keep_labels: bool | None = None,
        takes_unknown: bool | None = None,
    ) -> models.ImportOut:
        """Have a file checked, as multipart/form-data. Nothing is stored before `start`. JSON lines, or
        Parquet; with `takes_unknown` lines of tasks that the set does not have come in as
        demonstrations only."""
        return self._call(
            "POST",
            "/replay/imports",
            files={"file": file},
            form={"task_set": task_set, "keep_labels": keep_labels, "takes_unknown": takes_unknown},
        )

    def show_import(self, pk: int) -> models.ImportOut:
        """How far it is, and what the check found."""
        return self._call("GET", f"/replay/imports/{_segment(pk)}")

    def start_import(self, pk: int) -> models.ImportOut:
        """Store what the check found new; 409 unless it is checked."""
        return self._call("POST", f"/replay/imports/{_segment(pk)}/start")

    def cancel_import(self, pk: int) -> models.ImportOut:
        """Store nothing more; what was stored stays. 409 when it has ended."""
        return self._call("POST", f"/replay/imports/{_segment(pk)}/cancel")

    def list_reports(self, *, after: str | None = None, limit: int | None = None) -> models.ReportPage:
        """Reports of the current team, newest first."""
        return self._call("GET", "/reports", query={"after": after, "limit": limit})

    def write_report(
        self,
        *,
        title: str,
        experiments: list[int],
        text: str | None = None,
        charts: list[str] | None = None,
        with_tasks: bool | None = None,
        with_config: bool | None = None,
        trajectories: list[int] | None = None,
    ) -> models.VersionOut:
        """Freeze the first version of a new report."""
        return self._call(
            "POST",
            "/reports",
            body={
                "title": title,
                "text": text,
                "experiments": experiments,
                "charts": charts,
                "with_tasks": with_tasks,
                "with_config": with_config,
                "trajectories": trajectories,
            },
        )

    def write_report_version(
        self,
        pk: int,
        *,
        title: str,
        experiments: list[int],
        text: str | None = None,
        charts: list[str] | None = None,
        with_tasks: bool | None = None,
        with_config: bool | None = None,
        trajectories: list[int] | None = None,
    ) -> models.VersionOut:
        """Freeze another version; older ones stay as they are."""
        return self._call(
            "POST",
            f"/reports/{_segment(pk)}/versions",
            body={
                "title": title,
                "text": text,
                "experiments": experiments,
                "charts": charts,
                "with_tasks": with_tasks,
                "with_config": with_config,
                "trajectories": trajectories,
            },
        )

    def show_report_version(self, pk: int, number: int) -> models.VersionOut:
        """One version with everything that it froze."""
        return self._call("GET", f"/reports/{_segment(pk)}/versions/{_segment(number)}")

    def delete_report(self, pk: int) -> None:
        """Delete it with all versions, pictures and links."""
        return self._call("DELETE", f"/reports/{_segment(pk)}")

    def list_report_links(self, pk: int) -> list[models.LinkOut]:
        """Links of all its versions, for those who may make them."""
        return self._call("GET", f"/reports/{_segment(pk)}/links")

    def make_report_link(
        self, pk: int, number: int, *, days: Literal[1, 7, 30, 90] | None = None
    ) -> models.LinkOut:
        """A link to this version for people without an account."""
        return self._call(
            "POST", f"/reports/{_segment(pk)}/versions/{_segment(number)}/links", body={"days": days}
        )

    def revoke_report_link(self, pk: int, link_pk: int) -> None:
        """It shows nothing from now on."""
        return self._call("DELETE", f"/reports/{_segment(pk)}/links/{_segment(link_pk)}")

    def show_fleet(self) -> models.FleetOut:
        """Hosts, workers, and how many desktops are in which state."""
        return self._call("GET", "/fleet")

    def show_fleet_history(self, *, hours: Literal["1", "6", "24", "72"] | None = None) -> dict[str, Any]:
        """Desktops by phase, reset times and errored trajectories over time, as the page's charts have
        them."""
        return self._call("GET", "/fleet/history", query={"hours": hours})

    def list_desktops(
        self,
        *,
        phase: models.DesktopPhase | Literal["", "failed"] | None = None,
        host: str | None = None,
        provider: str | None = None,
        q: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.DesktopPage:
        """Living desktops, newest first; `q`: words of its name, holder or trouble."""
        return self._call(
            "GET",
            "/fleet/desktops",
            query={
                "phase": phase,
                "host": host,
                "provider": provider,
                "q": q,
                "after": after,
                "limit": limit,
            },
        )

    def show_desktop(self, name: str) -> models.DesktopOut:
        """One desktop."""
        return self._call("GET", f"/fleet/desktops/{_segment(name)}")

    def operate_desktop(
        self,
        name: str,
        verb: Literal["restart", "quarantine", "release", "kill"],
        *,
        reason: str | None = None,
    ) -> models.OperationOut:
        """Ask its host for an operation; `list_operations` tells what became of it."""
        return self._call(
            "POST", f"/fleet/desktops/{_segment(name)}/{_segment(verb)}", body={"reason": reason}
        )

    def list_operations(
        self, *, target: str | None = None, after: str | None = None, limit: int | None = None
    ) -> models.OperationPage:
        """What operators asked for, newest first; `target`: name of a host, worker or desktop."""
        return self._call(
            "GET", "/fleet/operations", query={"target": target, "after": after, "limit": limit}
        )

    def drain_worker(self, pk: int, *, on: bool) -> models.OperationOut:
        """No new work for a worker, or work again; what it runs goes on."""
        return self._call("POST", f"/fleet/workers/{_segment(pk)}/drain", body={"on": on})

    def drain_host(self, pk: int, *, on: bool) -> models.OperationOut:
        """The same for all workers of a host."""
        return self._call("POST", f"/fleet/hosts/{_segment(pk)}/drain", body={"on": on})

    def invite_host(
        self, *, roles: list[Literal["env", "gpu"]] | None = None, all_teams: bool | None = None
    ) -> models.InvitationOut:
        """A token with which one host joins over HTTPS, and the command to run there, which asks for it."""
        return self._call("POST", "/fleet/hosts", body={"roles": roles, "all_teams": all_teams})

    def revoke_host(self, pk: int) -> None:
        """End the identity of a host that joined; what it ran is run again elsewhere."""
        return self._call("POST", f"/fleet/joined/{_segment(pk)}/revoke")

    def list_task_sets(self) -> list[models.TaskSetOut]:
        """Every set that the team can practise."""
        return self._call("GET", "/tasks")

    def list_tasks(
        self,
        name: str,
        *,
        family: str | None = None,
        split: str | None = None,
        words: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.TaskPage:
        """Tasks of a set in their newest versions; `words`: of the instruction or id, all of them."""
        return self._call(
            "GET",
            f"/tasks/{_segment(name)}",
            query={"family": family, "split": split, "words": words, "after": after, "limit": limit},
        )

    def save_task(
        self, name: str, *, task: dict[str, Any], note: str | None = None, base: int | None = None
    ) -> models.TaskDetail:
        """Write a task, or the next version of one, into a set of the team; the set is made when it is
        new."""
        return self._call("POST", f"/tasks/{_segment(name)}", body={"task": task, "note": note, "base": base})

    def show_task(self, name: str, pk: int) -> models.TaskDetail:
        """One version of a task: what it asks, how it is set up and scored."""
        return self._call("GET", f"/tasks/{_segment(name)}/{_segment(pk)}")

    def verify_task(self, name: str, pk: int, *, rounds: int | None = None) -> models.QueuedOut:
        """Queue runs of its oracle and of doing nothing; their trajectories have purpose verification."""
        return self._call(
            "POST", f"/tasks/{_segment(name)}/{_segment(pk)}/verification", body={"rounds": rounds}
        )

    def upload_tasks(
        self, name: str, *, file: BinaryIO, heldout: float | None = None, leave_out: bool | None = None
    ) -> models.UploadOut:
        """Bring in a .json, .zip, .parquet or .jsonl of tasks, as a whole or not at all. `heldout`: share
        of those whose split the file does not name; `leave_out`: leave out what cannot be read,
        and held-out tasks whose instruction is practised."""
        return self._call(
            "POST",
            f"/tasks/{_segment(name)}/files",
            files={"file": file},
            form={"heldout": heldout, "leave_out": leave_out},
        )

    def show_attacks(self, name: str, pk: int) -> models.AttacksOut:
        """What attacks on a version's evaluator found, and whether the version counts as a patch."""
        return self._call("GET", f"/tasks/{_segment(name)}/{_segment(pk)}/attacks")

    def start_attacks(
        self, name: str, pk: int, *, kind: Literal["attack", "check"] | None = None
    ) -> models.QueuedOut:
        """Queue scripted runs on default desktops; their trajectories have purpose attack."""
        return self._call("POST", f"/tasks/{_segment(name)}/{_segment(pk)}/attacks", body={"kind": kind})

    def ask_for_attacks(
        self, name: str, pk: int, *, url: str, model: str, secret: str | None = None
    ) -> models.AskedOut:
        """Have a language model write attackers, which then run; it is shown the evaluator, never the
        oracle."""
        return self._call(
            "POST",
            f"/tasks/{_segment(name)}/{_segment(pk)}/attacks/model",
            body={"url": url, "model": model, "secret": secret},
        )

    def attack_from_turn(self, pk: int, *, turn: int) -> models.QueuedOut:
        """Queue attackers that go on from the state that a machine had before a turn; 409 where none was
        kept."""
        return self._call("POST", f"/trajectories/{_segment(pk)}/attacks", body={"turn": turn})

    def dismiss_exploit(self, pk: int, *, why: str | None = None) -> models.ExploitOut:
        """Say why a script is no exploit of its task; no version has to refuse it then."""
        return self._call("POST", f"/exploits/{_segment(pk)}/dismiss", body={"why": why})

    def list_rewards(self) -> models.RewardsOut:
        """Names of all presets, and the team's own with their terms."""
        return self._call("GET", "/rewards")

    def save_rewards(
        self,
        *,
        name: str,
        definition: models.RewardPreset,
        alpha: float | None = None,
        note: str | None = None,
    ) -> models.SavedPreset:
        """Save the next version of a name; older ones stay as they are."""
        return self._call(
            "POST", "/rewards", body={"name": name, "definition": definition, "alpha": alpha, "note": note}
        )

    def try_rewards(
        self, *, definition: models.RewardPreset, alpha: float | None = None, slice: str | None = None
    ) -> models.EffectsOut:
        """What a preset would have done to stored trajectories; it changes nothing."""
        return self._call(
            "POST", "/rewards/try", body={"definition": definition, "alpha": alpha, "slice": slice}
        )

    def list_members(self) -> list[models.MemberOut]:
        """Members of the current team."""
        return self._call("GET", "/team/members")

    def add_member(self, *, username: str, role: models.Role | None = None) -> models.NewMemberOut:
        """Put a person into the current team."""
        return self._call("POST", "/team/members", body={"username": username, "role": role})

    def change_role(self, pk: int, *, role: models.Role) -> models.MemberOut:
        """Give a member another role."""
        return self._call("PATCH", f"/team/members/{_segment(pk)}", body={"role": role})

    def remove_member(self, pk: int) -> None:
        """Take a person out of the team; what they did stays."""
        return self._call("DELETE", f"/team/members/{_segment(pk)}")

    def reset_password(self, pk: int) -> models.PasswordOut:
        """Generate a new password for a member whose account this team made."""
        return self._call("POST", f"/team/members/{_segment(pk)}/password")

    def show_prices(self) -> models.Prices:
        """The current team's prices."""
        return self._call("GET", "/team/prices")

    def save_prices(
        self,
        *,
        currency: str | None = None,
        gpu_hour: float | None = None,
        desktop_hour: float | None = None,
        million_prompt_tokens: float | None = None,
        million_completion_tokens: float | None = None,
    ) -> models.Prices:
        """Change them; every cost is shown at them from now on."""
        return self._call(
            "PUT",
            "/team/prices",
            body={
                "currency": currency,
                "gpu_hour": gpu_hour,
                "desktop_hour": desktop_hour,
                "million_prompt_tokens": million_prompt_tokens,
                "million_completion_tokens": million_completion_tokens,
            },
        )

    def list_rules(self) -> list[models.RuleOut]:
        """Rules by which trajectories go."""
        return self._call("GET", "/team/retention")

    def save_rule(
        self, *, experiment: int | None = None, max_age_days: int | None = None, max_bytes: int | None = None
    ) -> models.RuleOut:
        """Make a rule, or change the one that there is for the same experiments."""
        return self._call(
            "PUT",
            "/team/retention",
            body={"experiment": experiment, "max_age_days": max_age_days, "max_bytes": max_bytes},
        )

    def delete_rule(self, pk: int) -> None:
        """Without a rule everything stays."""
        return self._call("DELETE", f"/team/retention/{_segment(pk)}")

    def list_notification_rules(self) -> list[models.NotificationRuleOut]:
        """The current team's rules."""
        return self._call("GET", "/notifications/rules")

    def add_notification_rule(
        self,
        *,
        channel: models.Channel,
        kinds: list[models.Kind],
        target: str | None = None,
        secret: str | None = None,
        has_pictures: bool | None = None,
        stalled_minutes: int | None = None,
        inbox_hours: int | None = None,
    ) -> models.NotificationRuleOut:
        """Report these from now on."""
        return self._call(
            "POST",
            "/notifications/rules",
            body={
                "channel": channel,
                "kinds": kinds,
                "target": target,
                "secret": secret,
                "has_pictures": has_pictures,
                "stalled_minutes": stalled_minutes,
                "inbox_hours": inbox_hours,
            },
        )

    def test_notification_rule(self, pk: int) -> models.NotificationOut:
        """Queue a test message; `list_notifications` says how it went."""
        return self._call("POST", f"/notifications/rules/{_segment(pk)}/test")

    def switch_notification_rule(self, pk: int, *, is_on: bool) -> models.NotificationRuleOut:
        """Turn a rule off or on."""
        return self._call("PATCH", f"/notifications/rules/{_segment(pk)}", body={"is_on": is_on})

    def delete_notification_rule(self, pk: int) -> None:
        """It goes with its log."""
        return self._call("DELETE", f"/notifications/rules/{_segment(pk)}")

    def list_notifications(
        self,
        *,
        status: models.DeliveryStatus | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.NotificationPage:
        """What the current team's rules sent in the last 30 days."""
        return self._call("GET", "/notifications", query={"status": status, "after": after, "limit": limit})

    def retry_notification(self, pk: int) -> models.NotificationOut:
        """Try a message again that was given up or dropped."""
        return self._call("POST", f"/notifications/{_segment(pk)}/retry")

    def seed_samples(self) -> models.SamplesOut:
        """Give the current team sample runs; a second call changes nothing."""
        return self._call("POST", "/samples")

    def delete_samples(self) -> None:
        """Delete them with everything that they brought."""
        return self._call("DELETE", "/samples")

    def export_trajectory_folder(self, pk: int) -> Iterator[bytes]:
        """Its screens and turns as a page with its pictures, in a .zip."""
        return self._stream("GET", f"/trajectories/{_segment(pk)}/folder")

    def export_group_folder(self, pk: int) -> Iterator[bytes]:
        """A group and a page for each of its members, in a .zip."""
        return self._stream("GET", f"/groups/{_segment(pk)}/folder")

    def export_report_folder(self, pk: int, number: int) -> Iterator[bytes]:
        """A version with its charts drawn, and its tables and charts as CSV and LaTeX, in a .zip."""
        return self._stream("GET", f"/reports/{_segment(pk)}/versions/{_segment(number)}/folder")

    def export_osworld_results(self, pk: int) -> Iterator[bytes]:
        """The episodes of an evaluation: traj.jsonl, result.txt and screenshots by domain and task, in a
        .zip."""
        return self._stream("GET", f"/evaluations/{_segment(pk)}/osworld")

    def list_audit(
        self,
        *,
        person: str | None = None,
        action: models.AuditAction | None = None,
        object: str | None = None,
        since: str | None = None,
        until: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.AuditPage:
        """The audit log: of the current team for its admins, of all for superusers. `object`: "experiment
        12"."""
        return self._call(
            "GET",
            "/audit",
            query={
                "person": person,
                "action": action,
                "object": object,
                "since": since,
                "until": until,
                "after": after,
                "limit": limit,
            },
        )

    def list_views(self, *, page: models.Page | None = None) -> list[models.SavedViewOut]:
        """The team's views and the caller's own."""
        return self._call("GET", "/views", query={"page": page})

    def save_view(
        self, *, page: models.Page, name: str, query: str | None = None, for_team: bool | None = None
    ) -> models.SavedViewOut:
        """Keep a view for oneself, or with `for_team` for the team, which needs the role annotator."""
        return self._call(
            "POST", "/views", body={"page": page, "name": name, "query": query, "for_team": for_team}
        )

    def delete_view(self, pk: int) -> None:
        """Delete one's own view, or as an annotator one of the team's."""
        return self._call("DELETE", f"/views/{_segment(pk)}")
