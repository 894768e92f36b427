"""Regenerate the code in `mindie_ha/wire` from the `.proto` files beside it.

    python -m tools.generate_wire            writes the files
    python -m tools.generate_wire --check    exit 1 if a committed file differs

Per proto: `<name>_pb2.py` and `.pyi` (protoc), `<name>_pb2_grpc.py` (grpcio-tools) and a `.pyi` for it,
written here from the descriptors because grpcio-tools makes none and callers are type-checked strictly.
Generated code is committed so that installing the package needs no compiler.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
WIRE = Path("mindie_ha/wire")


def generate(out: Path) -> tuple[Path, ...]:
    """Write the code of every proto below `out`; returns the paths relative to it, sorted."""
    protos = sorted((ROOT / WIRE).glob("*.proto"))
    descriptors = out / "descriptors.bin"
    status = protoc.main(
        [
            "protoc",
            f"-I{ROOT}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            f"--descriptor_set_out={descriptors}",
            *[str(path) for path in protos],
        ]
    )
    if status != 0:
        raise SystemExit(f"protoc failed with {status}; see its messages above")
    described = FileDescriptorSet.FromString(descriptors.read_bytes())
    descriptors.unlink()
    for file in described.file:
        if file.service:
            name = Path(file.name).stem
            (out / WIRE / f"{name}_pb2_grpc.pyi").write_text("\n".join(grpc_stub(file)) + "\n")
    return tuple(sorted(path.relative_to(out) for path in (out / WIRE).glob("*_pb2*")))


def grpc_stub(file: FileDescriptorProto) -> Iterator[str]:
    """The lines of the type stub for the generated grpc.aio code of one proto."""
    module = f"{Path(file.name).stem}_pb2"
    yield "from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable"
    yield ""
    yield "import grpc.aio"
    yield f"from mindie_ha.wire import {module}"
    for service in file.service:
        yield ""
        yield f"class {service.name}Stub:"
        yield "    def __init__(self, channel: grpc.aio.Channel) -> None: ..."
        for method in service.method:
            reply = python_type(module, method.output_type)
            kind = "AsyncIterable" if method.server_streaming else "Awaitable"
            yield f"    {method.name}: Callable[..., {kind}[{reply}]]"
        yield ""
        yield f"class {service.name}Servicer:"
        for method in service.method:
            yield from servicer_method(module, method)
        yield ""
        yield f"def add_{service.name}Servicer_to_server("
        yield f"    servicer: {service.name}Servicer, server: grpc.aio.Server"
        yield ") -> None: ..."


def servicer_method(module: str, method: MethodDescriptorProto) -> Iterator[str]:
    """One method as grpc.aio calls it: a coroutine, or an async generator for a stream."""
    request, reply = (python_type(module, name) for name in (method.input_type, method.output_type))
    prefix, result = ("def", f"AsyncIterator[{reply}]") if method.server_streaming else ("async def", reply)
    yield f"    {prefix} {method.name}("
    yield f"        self, request: {request}, context: grpc.aio.ServicerContext"
    yield f"    ) -> {result}: ..."


def python_type(module: str, full_name: str) -> str:
    """`.config.Status` -> `config_pb2.Status`; our services use only messages of their own file."""
    return f"{module}.{full_name.rsplit('.', 1)[1]}"


def stale() -> tuple[Path, ...]:
    """Committed files that differ from what the protos say: changed, missing or left over."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        fresh = {path: (out / path).read_bytes() for path in generate(out)}
    committed = {path.relative_to(ROOT): path.read_bytes() for path in (ROOT / WIRE).glob("*_pb2*")}
    return tuple(sorted(p for p in fresh.keys() | committed.keys() if fresh.get(p) != committed.get(p)))


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Generate mindie_ha/wire from its .proto files")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    if not parser.parse_args().check:
        print(*generate(ROOT), sep="\n")
        return 0
    different = stale()
    if different:
        print("out of date, run `python -m tools.generate_wire`:", *different, file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
