"""Event files, read back by TensorBoard's own reader."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from testing.tracked_experiment import caption_of, strip_of_the_evaluation

pytestmark = [pytest.mark.db, pytest.mark.django_db]


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder)).Reload()
    return [(event.step, pytest.approx(event.value)) for event in found.Scalars(name)]


def test_it_reads_back_what_the_experiment_measured(experiment, tmp_path, capsys):
    for _ in range(2):  # a second call writes nothing twice
        call_command("track", str(experiment.pk), "--to", f"tensorboard={tmp_path}", "--follow", "0.1")
    folder = tmp_path / f"experiment-{experiment.pk}"
    assert scalars(folder, "rollout/success") == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
    assert scalars(folder, "evaluation/greedy/success") == [(3, 0.75)]
    assert scalars(folder, "evaluation/greedy/low") == [(3, 0.3)]
    found = EventAccumulator(str(folder)).Reload()
    config = found.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert '"algorithm.group_size"' in config
    [shown] = found.Images("samples/greedy/1")
    assert (shown.step, shown.encoded_image_string) == (3, strip_of_the_evaluation(experiment))
    assert found.SummaryMetadata("samples/greedy/1").summary_description == caption_of(experiment)
    assert found.Tensors("status")[0].tensor_proto.string_val == [b"finished"]
    assert f"sent to tensorboard={tmp_path}; points: 7, pictures: 1" in capsys.readouterr().out


def test_an_address_that_cannot_be_used_is_named(experiment):
    with pytest.raises(CommandError, match="/proc/here/experiment-"):
        call_command("track", str(experiment.pk), "--to", "tensorboard=/proc/here")
