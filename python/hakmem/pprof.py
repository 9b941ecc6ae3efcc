"""A heap profile in pprof's format: the message Profile of its profile.proto, gzipped.

protobuf writes it. The messages are described here with the numbers that the format gives their
fields, so nothing has to be compiled from a .proto file.
"""

from __future__ import annotations

import gzip
import importlib
from typing import Any

from hakmem import heap_profile
from hakmem.heap_profile import FIGURES
from hakmem.modules import PPROF, need
from hakmem.symbols import ENTRANCES, Frame, Line, Named

MOST = 2**63 - 1
UNITS = ("count", "bytes")
# Messages, their fields in the order of the numbers, from 1 on, and the type of each; * is for
# repeated ones.
MESSAGES = {
    "ValueType": "type:int64 unit:int64",
    "Label": "key:int64 str:int64 num:int64 num_unit:int64",
    "Sample": "location_id:*uint64 value:*int64 label:*Label",
    "Mapping": "id:uint64 memory_start:uint64 memory_limit:uint64 file_offset:uint64 filename:int64"
    " build_id:int64 has_functions:bool has_filenames:bool has_line_numbers:bool"
    " has_inline_frames:bool",
    "Line": "function_id:uint64 line:int64",
    "Location": "id:uint64 mapping_id:uint64 address:uint64 line:*Line is_folded:bool",
    "Function": "id:uint64 name:int64 system_name:int64 filename:int64 start_line:int64",
    "Profile": "sample_type:*ValueType sample:*Sample mapping:*Mapping location:*Location"
    " function:*Function string_table:*string drop_frames:int64 keep_frames:int64 time_nanos:int64"
    " duration_nanos:int64 period_type:ValueType period:int64 comment:*int64"
    " default_sample_type:int64",
}


def module() -> Any:
    """The library. Raises NoModule."""
    (protobuf,) = need(PPROF)
    for name in ("descriptor_pb2", "descriptor_pool", "message_factory"):
        importlib.import_module(f"{PPROF}.{name}")
    return protobuf


def message() -> Any:
    """The class of the message Profile. Raises NoModule."""
    protobuf = module()
    kinds = protobuf.descriptor_pb2.FieldDescriptorProto
    file = protobuf.descriptor_pb2.FileDescriptorProto(
        name="hakmem/profile.proto", package="perftools.profiles", syntax="proto3"
    )
    for name, fields in MESSAGES.items():
        described = file.message_type.add(name=name)
        for at, text in enumerate(fields.split(), 1):
            field, _, kind = text.partition(":")
            made = described.field.add(name=field, number=at)
            made.label = kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            if kind in MESSAGES:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".perftools.profiles.{kind}"
            else:
                made.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = protobuf.descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("perftools.profiles.Profile")
    factory = protobuf.message_factory
    if hasattr(factory, "GetMessageClass"):
        return factory.GetMessageClass(found)
    return factory.MessageFactory(pool).GetPrototype(found)  # before protobuf 4.22


def profile(named: Named) -> bytes:
    """Raises NoModule."""
    made = _Maker(named).made
    return gzip.compress(made.SerializeToString(deterministic=True), mtime=0)


class _Maker:
    def __init__(self, named: Named) -> None:
        self.made = message()()
        self._named = named
        self._strings: dict[str, int] = {}
        self._string("")
        self._mappings: dict[heap_profile.Mapping, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Frame, int] = {}
        for name in FIGURES:
            self.made.sample_type.add(type=self._string(name), unit=self._string(_unit(name)))
        self.made.period_type.type = self._string("space")
        self.made.period_type.unit = self._string("bytes")
        self.made.period = named.rate
        self.made.default_sample_type = self._string("inuse_space")
        self.made.drop_frames = self._string(ENTRANCES)
        frames = {frame for stack in named.stacks for frame in stack.frames}
        modules = {frame.module for frame in frames if frame.module is not None}
        for module_ in sorted(modules, key=lambda one: one.start):  # the program's is the first
            self._mapping(module_, [frame for frame in frames if frame.module == module_])
        for stack in named.stacks:
            sample = self.made.sample.add()
            sample.location_id.extend(self._location(frame) for frame in stack.frames)
            sample.value.extend(max(-MOST, min(round(figure), MOST)) for figure in stack.figures)

    def _string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self.made.string_table.append(text)
        return self._strings[text]

    def _mapping(self, module_: heap_profile.Mapping, frames: list[Frame]) -> None:
        lines = [line for frame in frames for line in frame.lines]
        self._mappings[module_] = len(self._mappings) + 1
        self.made.mapping.add(
            id=self._mappings[module_],
            memory_start=module_.start,
            memory_limit=module_.end,
            file_offset=module_.offset,
            filename=self._string(module_.path),
            build_id=self._string(self._named.build_ids.get(module_.path, "")),
            has_functions=bool(lines),
            has_filenames=any(line.file for line in lines),
            has_line_numbers=any(line.line for line in lines),
            has_inline_frames=any(len(frame.lines) > 1 for frame in frames),
        )

    def _location(self, frame: Frame) -> int:
        if frame not in self._locations:
            self._locations[frame] = len(self._locations) + 1
            made = self.made.location.add(id=self._locations[frame], address=frame.address)
            if frame.module is not None:
                made.mapping_id = self._mappings[frame.module]
            for line in frame.lines:
                made.line.add(function_id=self._function(line), line=line.line)
        return self._locations[frame]

    def _function(self, line: Line) -> int:
        key = line.function, line.file
        if key not in self._functions:
            self._functions[key] = len(self._functions) + 1
            self.made.function.add(
                id=self._functions[key],
                name=self._string(line.function),
                system_name=self._string(line.function),
                filename=self._string(line.file),
            )
        return self._functions[key]


def _unit(name: str) -> str:
    return UNITS[name.endswith("_space")]
