"""Checkpoints: kills at any of their files, damage, and those of another run or version."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from victims import KILLED, Fault, call, contents

from rewardshift.errors import InputError
from rewardshift.files import held, read_sealed, write_sealed
from rewardshift.training.checkpoint import FORMAT, Checkpoints, Snapshot

RECORD = np.dtype([("reward", np.float32), ("action", np.int32)])


TEMPLATE = {"weights": np.zeros(5, np.float32)}


def save_until(folder: Path, stop: int) -> dict[int, Snapshot]:
    """Checkpoints like a run's, from the last one in a folder on; those that were made."""
    made = {}
    with held(folder):
        checkpoints = Checkpoints(folder / "checkpoints", ("config",), RECORD, 2)
        last = checkpoints.newest(TEMPLATE)
        step = last.step if last else 0
        while step < stop:
            step += 5
            arrays = {"weights": np.arange(step, dtype=np.float32)[:5]}
            records = np.zeros((2, 5), RECORD)
            records["action"] = np.arange(step - 5, step)
            made[step] = Snapshot(step, arrays, {"rows": [[step]]}, records)
            checkpoints.save(made[step], 12)
    return made


def newest(folder: Path) -> Snapshot | None:
    return Checkpoints(folder / "checkpoints", ("config",), RECORD, 2).newest(TEMPLATE)


@pytest.mark.parametrize(
    ("moment", "files"), [("half", 15), ("written", 15), ("renamed", 15), ("deleted", 7)]
)
def test_a_kill_at_any_file_of_a_checkpoint_harms_none(
    moment: Any, files: int, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    made = save_until(whole, 30)
    for number in range(1, files + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert call(save_until, folder, 25, fault=Fault(moment, number)).code == KILLED
        found = newest(folder)
        if found is not None:
            assert found.arrays["weights"].tolist() == made[found.step].arrays["weights"].tolist()
            assert found.records is not None
            assert found.records["action"][1, -1] == found.step - 1
        if moment != "deleted":  # every third file completes a checkpoint
            assert (found.step if found else 0) == 5 * ((number - (moment != "renamed")) // 3)
        save_until(folder, 30)
        assert contents(folder) == contents(whole)
    assert call(save_until, tmp_path, 25, fault=Fault(moment, files + 1)).code == 0


def test_a_flipped_byte_or_a_cut_is_refused_or_harmless(tmp_path: Path) -> None:
    """Harmless is what reads the same: a space that became a tab, 1e-05 that became 1E-05."""
    save_until(tmp_path, 15)
    whole, rng, refused = newest(tmp_path), random.Random(7), 0
    assert whole is not None
    manifest = tmp_path / "checkpoints" / "checkpoint-000000000015.json"
    segments = read_sealed(manifest, version=FORMAT)["segments"]
    for path in (manifest, *(manifest.with_name(name) for name in [STATE, *segments])):
        content = path.read_bytes()
        places = rng.sample(range(len(content)), 150)
        flipped = [flip(content, place, rng.randrange(8)) for place in places]
        for damaged in (*flipped, *(content[:place] for place in places), b""):
            path.write_bytes(damaged)
            if path == manifest and harmless(damaged, content):
                assert newest(tmp_path) is not None
                continue
            with pytest.raises(InputError, match=path.name) as caught:
                newest(tmp_path)
            assert str(caught.value).endswith(f"move {manifest.name} out of the folder")
            refused += 1
        path.write_bytes(content)
    assert refused > 1450


STATE = "state-000000000015.npz"


def flip(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def harmless(damaged: bytes, content: bytes) -> bool:
    try:
        return json.loads(damaged) == json.loads(content)
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"config": "other"}, "it belongs to a run with another configuration"),
        ({"format": FORMAT + 1}, f"its format is {FORMAT + 1}, this version reads {FORMAT}"),
    ],
)
def test_a_checkpoint_of_another_run_or_version_is_refused(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    save_until(tmp_path, 15)
    manifest = tmp_path / "checkpoints" / "checkpoint-000000000015.json"
    write_sealed(manifest, {**read_sealed(manifest, version=FORMAT), **change})
    with pytest.raises(InputError) as caught:
        newest(tmp_path)
    assert str(caught.value) == (
        f"the checkpoint {str(manifest)!r} cannot be used: {reason}; to go on from the one"
        f" before it, move {manifest.name} out of the folder"
    )
    manifest.unlink()
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 10
