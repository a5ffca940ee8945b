"""Claims about desktops, pages, workers and robustness."""

from __future__ import annotations

from benchmarks.results_page.claim import Claim, Figures, each, number, percent

DESKTOPS = (
    Claim(
        result="desktops",
        says="An x11 desktop starts in half a second, resets in milliseconds and leaks nothing",
        figure=lambda found: (
            f"start {number(found['start_s']['p50'])} s, "
            f"reset {number(found['reset_one']['p50'] * 1000)} ms, "
            f"{found['leaks']['processes']} processes left"
        ),
        n=lambda found: f"{found['leaks']['resets']} resets",
    ),
    Claim(
        result="accessibility",
        says="A widget tree is read many times quicker than question by question, and costs a reset little",
        figure=lambda found: (
            f"{number(found['read_ms_p50'])} ms (p95 {number(found['read_ms_p95'])}), "
            f"{number(found['slow_read_over_read'])} times quicker; reset with it "
            f"{number(found['reset_ms_p50'])} ms, {number(found['reset_over_without_tree'])} of one without"
        ),
        n=lambda found: (
            f"{found['widgets_on_screen']} widgets, {found['reads']} reads, {found['resets']} resets, "
            f"load {found['load_before_and_after'][0]}"
        ),
        missed=("A tree of 502 widgets is read within 99 ms (p95) on two quiet processors; the bar is 50.",),
    ),
    Claim(
        result="desk_host_calls",
        says="The desk host answers hundreds of calls a second",
        figure=lambda found: f"{found['calls_per_s']} calls/s, a lease {number(found['lease']['p50_ms'])} ms",
        n=lambda found: f"{found['threads']} callers",
    ),
    Claim(
        result="vm_clone",
        says="A virtual machine is cloned from a paused template instead of booted",
        figure=lambda found: (
            f"agent after {number(found['agent_s']['p50'])} s, boot {number(found['cold_boot_s'])} s, "
            f"{number(found['private_mb']['p50'])} MB each"
        ),
        n=lambda found: f"{found['clones']} clones, {found['accelerator']}",
    ),
    Claim(
        result="vm_soak",
        says="Episodes on virtual machines run without an error",
        figure=lambda found: f"{found['solved']} of {found['asked']} solved, {found['errored']} errored",
        n=lambda found: f"{found['asked']} episodes",
    ),
    Claim(
        result="branch",
        says="A branch reaches its turn sooner than a replay",
        figure=lambda found: (
            f"{number(found['branch_s']['p50'])} s instead of {number(found['replay_s']['p50'])} s, "
            f"{found['same_screen']} with the same screen"
        ),
        n=lambda found: f"{found['rounds']} branches",
    ),
    Claim(
        result="input_exact",
        says="Every pointer action and every character arrives",
        figure=lambda found: (
            f"{sum(run['pointer_wrong'] + run['characters_wrong'] for run in found['runs'])} wrong"
        ),
        n=lambda found: (
            f"{sum(run['pointer_actions'] for run in found['runs'])} actions, "
            f"{sum(run['characters'] for run in found['runs'])} characters"
        ),
    ),
    Claim(
        result="late_repaints",
        says="A turn's picture is the one that the action led to",
        figure=lambda found: (
            f"{percent(found['arms']['before']['late_share'])} late before, "
            f"{percent(found['arms']['now']['late_share'])} now"
        ),
        n=lambda found: f"{found['arms']['now']['turns']} turns of each",
        missed=(
            "Pictures still come late in about one of six turns on a busy machine, and most are not marked.",
        ),
    ),
    Claim(
        result="vnc_proxy",
        says="Watching a desktop costs no more than websockify",
        figure=lambda found: (
            f"{found['deskhand']['p50_ms']} ms and {found['deskhand']['cpu_ms_per_update']} ms of CPU, "
            f"websockify {found['websockify']['p50_ms']} and {found['websockify']['cpu_ms_per_update']}"
        ),
        n=lambda found: f"{found['deskhand']['updates']} updates",
    ),
    Claim(
        result="hostile_desktop",
        says="Programs on a sandboxed desktop get nowhere else",
        figure=lambda found: f"{len(found['succeeded'])} of {found['attacks']} attacks succeeded",
        n=lambda found: f"{found['attacks']} attacks, each also without its defence",
    ),
    Claim(
        result="hostile_hosts",
        says="A host that joined can be no other host, and reaches nothing of another team",
        figure=lambda found: f"{len(found['succeeded'])} of {found['attacks']} attacks succeeded",
        n=lambda found: f"{found['attacks']} attacks, each also without its defence",
    ),
    Claim(
        result="hostile_machine",
        says="Programs in a virtual machine neither leave it nor forge a score",
        figure=lambda found: f"{len(found['succeeded'])} of {found['attacks']} attacks succeeded",
        n=lambda found: f"{found['attacks']} attacks, each also without its defence",
    ),
    Claim(
        result="desktop_chaos",
        says="A desktop that dies costs one re-run",
        figure=lambda found: f"{sum(fault['lost'] for fault in found['faults'])} places lost",
        n=lambda found: f"{len(found['faults'])} faults",
    ),
)
TASKS = (
    Claim(
        result="desk_office",
        says="Every task of desk-office is solved by its oracle, and not by doing nothing",
        figure=lambda found: f"{found['proofs'] - len(found['failed'])} of {found['proofs']} proofs hold",
        n=lambda found: f"{found['tasks']} tasks, {found['rounds']} rounds",
    ),
    Claim(
        result="osworld_compat",
        says="OSWorld's own evaluators run on our desktops",
        figure=lambda found: each(
            f"{kind} {count['here']} of {count['all']}" for kind, count in found["functions"].items()
        ),
        n=lambda found: f"{len(found['providers']['x11']['families'])} families",
    ),
    Claim(
        result="osworld_import",
        says="The import says which OSWorld tasks run where",
        figure=lambda found: each(f"{place} {count}" for place, count in found["runnable"].items()),
        n=lambda found: f"{found['num_tasks']} tasks",
    ),
    Claim(
        result="loss_parity",
        says="Losses agree with TRL, and parts of a batch with the whole",
        figure=lambda found: f"largest difference {found['max_difference_to_trl']:.1g}",
        n=lambda found: f"{found['num_cases']} cases",
    ),
    Claim(
        result="families",
        says="Every family of models trains, samples and is exported as transformers computes it",
        figure=lambda found: (
            f"loss and gradient at most {_largest(found, 'loss', 'gradient', 'adapters')} apart, engine and "
            f"trainer {_largest(found, 'engine_gap_nats')} nats"
        ),
        n=lambda found: f"{len(found['families'])} tiny random models, 1 and 2 processes",
    ),
)
WEB = (
    Claim(
        result="live_latency",
        says="A screen is on the page within a tenth of a second",
        figure=lambda found: f"median {found['p50_ms']} ms, 99 % {found['p99_ms']} ms",
        n=lambda found: f"{found['num_frames']} screens of {found['num_desktops']} desktops",
    ),
    Claim(
        result="pages",
        says="Pages stay quick with 100 000 trajectories",
        figure=lambda found: (
            f"slowest 95 % {number(found['worst_p95_ms'])} ms, at most {found['worst_queries']} queries"
        ),
        n=lambda found: f"{len(found['pages'])} measurements, both databases",
    ),
    Claim(
        result="long_trajectories",
        says="The viewer stays quick with 500 turns",
        figure=lambda found: (
            f"painted in {found['worst_paint_p95_ms']} ms, next turn {found['turn_p95_ms']} ms"
        ),
        n=lambda found: f"{found['num_loads']} loads",
    ),
    Claim(
        result="curation",
        says="Labelling takes a key and no wait",
        figure=lambda found: (
            f"next entry painted in {found['painted_p50_ms']} ms, list {found['list_p50_ms']} ms"
        ),
        n=lambda found: f"{found['num_labels']} labels, {number(found['num_entries'])} entries",
    ),
    Claim(
        result="jobs",
        says="The jobs of a day take half the clicks of before, and have no dead end",
        figure=lambda found: (
            f"{found['num_halved']} of {len(found['halved'])}, {found['num_dead_ends']} dead ends"
        ),
        n=lambda found: (
            f"{len(found['jobs'])} jobs at 1280 and 390 pixels; tries in two of them; the two runs "
            "are a clone and its parent, the cancelled one waits, and the 30 entries are of 1 000 made-up "
            "ones (before: 200)"
        ),
    ),
    Claim(
        result="reward_lab",
        says="A reward is tried on 100 000 turns within seconds, exactly",
        figure=lambda found: (
            f"{number(found['expression_s'])} s, {found['exact']} of {found['checked']} exact"
        ),
        n=lambda found: f"{number(found['turns'])} turns",
    ),
    Claim(
        result="dataset_export",
        says="An export writes thousands of trajectories a second",
        figure=lambda found: f"{number(found['trajectories_per_s'])} trajectories/s",
        n=lambda found: f"{number(found['trajectories'])} trajectories",
    ),
    Claim(
        result="heavy_requests",
        says="No request breaks the server or takes over a second",
        figure=lambda found: f"{len(found['broken'])} broken, {len(found['slower_than_1_s'])} slower",
        n=lambda found: f"{number(found['requests'])} requests to {found['routes']} routes",
    ),
    Claim(
        result="growth",
        says="Storage grows as described",
        figure=lambda found: (
            f"{number(found['database']['per_1000_mb'])} MB of database and "
            f"{number(found['recorded']['per_1000_mb'])} MB of screenshots a thousand"
        ),
        n=lambda found: f"{found['database']['trajectories']} trajectories of First desk",
    ),
)
WORK = (
    Claim(
        result="turn_cost",
        says="A turn of First desk costs little CPU",
        figure=lambda found: (
            f"{number(found['cpu_s'] * 1000)} ms a turn, {number(found['turns_per_s'])} turns/s"
        ),
        n=lambda found: f"{found['num_turns']} turns",
    ),
    Claim(
        result="turn_reports",
        says="Reporting a turn costs few statements",
        figure=lambda found: (
            f"{number(found['worker_cpu_ms_per_turn'])} ms of CPU, "
            f"{number(found['statements_per_turn'])} statements"
        ),
        n=lambda found: f"{found['num_turns']} turns",
    ),
    Claim(
        result="fleet_throughput",
        says="Its defences cost a fleet at most a tenth",
        figure=lambda found: f"{percent(found['share_of_fleet_without_defences'])} of the rate without",
        n=lambda found: f"{len(found['runs'])} runs of 200 trajectories",
    ),
    Claim(
        result="thousand_desktops",
        says="One server drives a thousand desktops",
        figure=lambda found: each(
            f"{number(point['turns_per_s'])} turns/s with {point['slots']} slots" for point in found["curve"]
        ),
        n=lambda found: (
            f"{found['workers']} workers, {sum(point['num_turns'] for point in found['curve'])} turns"
        ),
        missed=("With 1 000 slots two cores make about half of the 300 turns a second of the bar.",),
    ),
    Claim(
        result="many_hosts",
        says="Joined hosts work at 85 % of one machine's rate, and lose nothing when killed",
        figure=lambda found: (
            f"{percent(found['joined to one machine']['mean_ratio'])} "
            f"± {percent(found['joined to one machine']['standard_error'])}; "
            f"{sum(phase['passed'] for phase in found['phases'].values())} of "
            f"{len(found['phases'])} other parts hold"
        ),
        n=lambda found: f"{len(found['joined to one machine']['pairs'])} pairs",
        missed=("Joined hosts reach about 81 % of one machine's rate; the bar is 85.",),
    ),
    Claim(
        result="scheduling",
        says="Experiments are packed onto GPUs nearly as well as possible",
        figure=lambda found: f"{percent(found['share_of_best'])} of the bound",
        n=lambda found: f"{found['num_experiments']} experiments",
    ),
    Claim(
        result="setup_time",
        says="A fresh clone is up within two minutes, a second start in seconds",
        figure=lambda found: (
            f"{number(found['clone_to_signed_in_s'])} s, then {number(found['second_start_s'])} s"
        ),
        n=lambda found: "one, with packages cached",
    ),
    Claim(
        result="chaos_product",
        says="Whatever dies, nothing is lost, doubled or wrongly scored",
        figure=lambda found: (
            f"{sum(run['passed'] for run in found['runs'])} of {len(found['runs'])} runs hold"
        ),
        n=lambda found: f"{sum(len(run['faults']) for run in found['runs'])} faults",
    ),
    Claim(
        result="chaos_far",
        says="An env server, a joined host, or their port killed, cut off or slow costs nothing",
        figure=lambda found: (
            f"{sum(run['passed'] for run in found['runs'])} of {len(found['runs'])} runs hold"
        ),
        n=lambda found: f"{sum(len(run['faults']) for run in found['runs'])} faults",
    ),
    Claim(
        result="containers",
        says="Containers are upgraded while they train, used in a browser, killed, backed up and stopped",
        figure=lambda found: (
            f"{sum(step['passed'] for step in found['steps'])} of {len(found['steps'])} steps pass; "
            + "`prepare` on an empty database {prepare_s:.0f} s ({prepare_cpu_s:.0f} of CPU); ".format_map(
                next(step for step in found["steps"] if "prepare_cpu_s" in step)
            )
            + each(f"{name} {size} GB" for name, size in found["images_gb"].items())
        ),
        n=lambda found: "one walk at load 13 to 34, a raised CPU share; upgraded over four migrations",
    ),
    Claim(
        result="chaos_containers",
        says="Each container killed, stopped, frozen or cut off while it trains: nothing is lost or doubled",
        figure=lambda found: (
            f"{sum(run['passed'] for run in found['runs'])} of 4 lanes hold: "
            + each(run["lane"] for run in found["runs"] if run["passed"])
            + "; the next step within {:.0f} s".format(
                max(hit["step_s"] for run in found["runs"] for hit in run["strikes"])
            )
        ),
        n=lambda found: (
            f"{sum(len(run['strikes']) for run in found['runs'])} blows, one of each kind to each of seven, "
            "at load 11 to 19, a raised CPU share"
        ),
    ),
    Claim(
        result="chaos_slurm",
        says="A SLURM job, its node or a daemon ended while it trains: nothing is lost or doubled",
        figure=lambda found: (
            each(hit["hits"] for hit in found["runs"][0]["strikes"] if hit["passed"])
            + f"; the next step within {max(hit['step_s'] for hit in found['runs'][0]['strikes']):.0f} s"
        ),
        n=lambda found: f"{len(found['runs'][0]['strikes'])} blows, one each, at load 2 to 27",
    ),
    Claim(
        result="resume",
        says="A killed trainer or engine changes no loss (on CPUs)",
        figure=lambda found: f"within {found['tolerance']}",
        n=lambda found: f"{len(found['runs'])} runs",
    ),
    Claim(
        result="mutants",
        says="The tests notice planted mistakes",
        figure=lambda found: f"{percent(found['share_noticed'])} noticed",
        n=lambda found: f"{found['changes']} changes",
        missed=("The last call was cut off after a third of the list; ten changes were not noticed.",),
    ),
)


def areas() -> dict[str, tuple[Claim, ...]]:
    """Heading -> its claims, but for learning and GPUs."""
    return {
        "Desktops": DESKTOPS,
        "Tasks and losses": TASKS,
        "Pages and data": WEB,
        "Workers and robustness": WORK,
    }


def _largest(found: Figures, *parts: str) -> str:
    """Of the parts of all families, to one digit."""
    return f"{max(row[part] for row in found['families'].values() for part in parts):.0e}"
