"""Loaded by schemathesis (see scripts/schemathesis.mjs)."""

import re
import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """A generated Idempotency-Key repeats, and a repeat is replayed: what it shows may have been deleted since."""
    if case.meta is None or case.meta.phase.name.value != "stateful":
        return
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(r"[!-~]{1,255}", key):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
