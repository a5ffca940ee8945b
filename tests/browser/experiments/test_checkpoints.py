"""The checkpoints tab: evaluate and export from dialogs, results that appear without a reload."""

from django.utils import timezone
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment
from webapp.checkpoints.services import exports
from webapp.experiments.models import CheckpointExport, CheckpointRecord, Experiment


def make_checkpoint(people: People) -> CheckpointRecord:
    experiment = make_experiment(team=people.team, owner=people.operator, name="Source")
    return CheckpointRecord.objects.create(
        experiment=experiment, step=10, policy_version=11, path="/elsewhere/00003-grpo-000010"
    )


def test_an_evaluation_is_asked_for_and_its_result_appears_beside_the_checkpoint(
    sign_in: SignIn, people: People
):
    checkpoint = make_checkpoint(people)
    page = sign_in(people.operator)
    page.goto(f"/experiments/{checkpoint.experiment_id}/?tab=checkpoints")
    page.get_by_role("button", name="Evaluate").click()
    dialog = page.locator("#evaluate-checkpoint")
    expect(dialog).to_contain_text("Evaluate step 10")
    expect(dialog).to_contain_text("No gpu worker is online")
    dialog.get_by_label("Held-out tasks").fill("100")
    expect(dialog).to_contain_text("at most ± 10 points")
    expect(dialog.get_by_label("Temperature")).to_have_value("1.0")
    dialog.get_by_label("Sampling").select_option("greedy")
    expect(dialog.get_by_label("Temperature")).to_be_hidden()
    dialog.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_text("its result will appear here")).to_be_visible()

    queued = Experiment.objects.get(evaluates=checkpoint)
    assert (queued.config["evaluation"]["num_tasks"], queued.config["evaluation"]["temperature"]) == (100, 0)
    row = page.locator(f"#checkpoint-{checkpoint.pk}")
    expect(row).to_contain_text(f"#{queued.pk}")
    expect(page.locator("[data-live-pill]").first).to_contain_text("Live")
    make_evaluation(queued, won=63, total=100, temperature=0.0)
    expect(row).to_contain_text("63 %")
    expect(row).to_contain_text("Greedy")


def test_an_export_shows_its_progress_and_then_its_download(sign_in: SignIn, people: People):
    checkpoint = make_checkpoint(people)
    page = sign_in(people.operator)
    page.goto(f"/experiments/{checkpoint.experiment_id}/?tab=checkpoints")
    page.get_by_role("button", name="Export").click()
    dialog = page.locator("#export-checkpoint")
    dialog.get_by_label("Number format").select_option("float32")
    dialog.get_by_role("button", name="Export").click()
    expect(page.get_by_text("No gpu worker is online", exact=True)).to_be_visible()
    expect(page.locator("[data-live-pill]").first).to_contain_text("Live")

    export = CheckpointExport.objects.get(checkpoint=checkpoint, dtype="float32")
    CheckpointExport.objects.filter(pk=export.pk).update(status="running", heartbeat_at=timezone.now())
    export.refresh_from_db()
    exports.report_export(export.pk, done_bytes=2_000_000, total_bytes=8_000_000)
    row = page.locator(f"#export-{export.pk}")
    expect(row).to_contain_text("2.0 MB of 8.0 MB")
    exports.finish_export(export.pk, size_bytes=8_000_000)
    expect(row.get_by_role("link", name=".tar")).to_be_visible()


def test_a_viewer_sees_results_and_no_buttons(sign_in: SignIn, people: People):
    checkpoint = make_checkpoint(people)
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{checkpoint.experiment_id}/?tab=checkpoints")
    expect(page.get_by_text("Not evaluated")).to_be_visible()
    expect(page.get_by_role("button", name="Evaluate")).to_have_count(0)
