"""Event files, compared with what TensorBoard itself writes."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yurt.model.event_file import Scalar, read

TYPES = [
    *("DT_FLOAT", "DT_DOUBLE", "DT_HALF", "DT_INT32", "DT_INT64", "DT_INT8", "DT_UINT8", "DT_INT16", "DT_UINT16"),
    *("DT_UINT32", "DT_UINT64", "DT_BOOL"),
]


def written(folder: Path, *events: Any) -> bytes:
    """Return the event file that TensorBoard's own writer makes of these events."""
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for event in events:
        writer.add_event(event)
    writer.close()
    (file,) = folder.iterdir()
    return file.read_bytes()


def simple(tag: str, value: float, step: int, at: float = 1.5) -> Any:
    from tensorboard.compat.proto import event_pb2, summary_pb2

    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
    return event_pb2.Event(wall_time=at, step=step, summary=summary)


def tensor(tag: str, plugin: str | None = "scalars", step: int = 3, **fields: Any) -> Any:
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    value = summary_pb2.Summary.Value(tag=tag, tensor=TensorProto(**fields))
    if plugin is not None:
        value.metadata.plugin_data.plugin_name = plugin
    return event_pb2.Event(wall_time=2.5, step=step, summary=summary_pb2.Summary(value=[value]))


def test_scalars_in_order_with_negative_and_large_steps(tmp_path: Path) -> None:
    data = written(tmp_path, simple("loss", 0.5, 1), simple("train/acc", -2.0, -7), simple("loss", 0.25, 1 << 40))
    found, offset = read(data)
    assert found == [
        Scalar("loss", 1, 1.5, 0.5),
        Scalar("train/acc", -7, 1.5, -2.0),
        Scalar("loss", 1 << 40, 1.5, 0.25),
    ]
    assert offset == len(data)


def test_summary_of_several_values_and_of_other_kinds(tmp_path: Path) -> None:
    from tensorboard.compat.proto import event_pb2, summary_pb2

    several = event_pb2.Event(wall_time=1, step=2)
    several.summary.value.add(tag="a", simple_value=1)
    several.summary.value.add(tag="picture").image.encoded_image_string = b"x" * 300
    several.summary.value.add(tag="h").histo.CopyFrom(summary_pb2.HistogramProto(min=1, bucket=[1.0, 2.0]))
    several.summary.value.add(tag="b", simple_value=float("nan"))
    found, _offset = read(written(tmp_path, several, event_pb2.Event(step=1, graph_def=b"g" * 500)))
    assert [each.tag for each in found] == ["a", "b"] and found[1].value != found[1].value


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("packed", [True, False])
def test_scalar_tensors_of_all_types(tmp_path: Path, name: str, packed: bool) -> None:
    import numpy as np
    from tensorboard.compat.proto import types_pb2
    from tensorboard.util.tensor_util import make_tensor_proto

    kind = name.removeprefix("DT_").lower()
    dtype = {"half": "float16", "float": "float32", "double": "float64"}.get(kind, kind)
    value = np.array(1 if kind == "bool" else 3 if kind.startswith("u") else -3, dtype=dtype)
    if packed:
        made = {"tensor_content": value.tobytes(), "dtype": getattr(types_pb2, name)}
    else:
        proto = make_tensor_proto(value)
        made = {field.name: each for field, each in proto.ListFields() if field.name != "tensor_shape"}
    found, _offset = read(written(tmp_path, tensor("x", **made)))
    assert found == [Scalar("x", 3, 2.5, float(value))]


def test_layout_of_torch_and_tf2(tmp_path: Path) -> None:
    from tensorboard.compat.proto import types_pb2
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.plugins.scalar import summary_v2

    old = tensor("old", float_val=[0.5], dtype=types_pb2.DT_FLOAT)
    one = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    two = TensorShapeProto(dim=[TensorShapeProto.Dim(size=2)])
    data = written(
        tmp_path,
        old,
        tensor("bare", plugin=None, double_val=[0.25], dtype=types_pb2.DT_DOUBLE),
        tensor("one", float_val=[2.0], dtype=types_pb2.DT_FLOAT, tensor_shape=one),
        tensor("many", float_val=[2.0, 3.0], dtype=types_pb2.DT_FLOAT, tensor_shape=two),
        tensor("other", plugin="hparams", float_val=[2.0], dtype=types_pb2.DT_FLOAT),
        tensor("words", plugin="text", string_val=[b"x"], dtype=types_pb2.DT_STRING),
        _event_of(summary_v2.scalar_pb("v2", 0.125)),
    )
    found = {each.tag: each.value for each in read(data)[0]}
    assert found == {"old": 0.5, "bare": 0.25, "one": 2.0, "v2": 0.125}


def _event_of(summary: Any) -> Any:
    from tensorboard.compat.proto import event_pb2

    return event_pb2.Event(wall_time=1, step=1, summary=summary)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("events"), *(simple(f"t{step % 3}", step / 7, step) for step in range(40)))


@given(cuts=st.lists(st.integers(0, 3000), max_size=8))
def test_file_that_arrives_in_pieces_reads_the_same(sample: bytes, cuts: list[int]) -> None:
    whole, _offset = read(sample)
    found, offset = [], 0
    for cut in [*sorted(cuts), len(sample)]:
        new, offset = read(sample[:cut], offset)
        found += new
    assert found == whole and offset == len(sample)


@settings(max_examples=300)
@given(at=st.integers(0, 3000), junk=st.binary(min_size=1, max_size=40))
def test_damaged_bytes_never_raise_and_keep_what_was_before(sample: bytes, at: int, junk: bytes) -> None:
    at %= len(sample)
    damaged = sample[:at] + junk + sample[at + len(junk) :]
    before, _offset = read(sample[:at])
    found, offset = read(damaged)
    assert found[: len(before)] == before and offset <= len(damaged)


@given(st.binary(max_size=200))
def test_any_content_of_a_record(content: bytes) -> None:
    from yurt.model.event_file import _checksum

    header = struct.pack("<Q", len(content))
    record = header + _checksum(header) + content + b"\0\0\0\0"
    found, offset = read(record + record)
    assert offset == 2 * len(record) and len(found) % 2 == 0


def test_hundred_thousand_scalars_take_about_a_second(tmp_path: Path) -> None:
    one = written(tmp_path, *(simple("train/loss", 0.5, step) for step in range(1000)))
    data = one * 100
    started = time.process_time()
    found, _offset = read(data)
    assert len(found) == 100_000 and time.process_time() - started < 20  # one second on an idle machine
