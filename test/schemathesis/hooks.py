"""Loaded by schemathesis (see scripts/schemathesis.mjs). It draws inputs that are valid by the document; here some get ids of existing records."""

import json
import os
import re
import uuid

import schemathesis

# Ids of one of each resource.
WORLD = json.loads(os.environ["DARKROOM_WORLD"])


def resource_of(path, parameter):
    if parameter != "id":
        return parameter.removesuffix("_id")
    if path.startswith("/v1/finetunes/"):
        return "finetune"
    if path.startswith("/v1/keys/"):
        return "apiKey"
    return "collection" if path.startswith("/v1/prompts/collections/") else "generation"


def use_existing_ids(case):
    for parameter in case.path_parameters or {}:
        case.path_parameters[parameter] = WORLD[resource_of(case.operation.path, parameter)]
    elements = case.body if isinstance(case.body, list) else []
    for element in elements:
        if case.operation.path.endswith("/prompts"):
            element["prompt"] = "a robot " + element["prompt"][:1900]
        elif "name" in element:
            element["id"] = WORLD["prompt"]
        else:
            element["id"] = WORLD["style"]


def spare_what_is_needed(case):
    for parameter, value in (case.path_parameters or {}).items():
        if value in WORLD.values():
            case.path_parameters[parameter] = "0" * 24


def with_exact_numbers(value):
    """Numbers that a double does not hold are refused, and so is -0: no schema can say that."""
    if isinstance(value, dict):
        return {key: with_exact_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_exact_numbers(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value if value != 0 and abs(value) <= 2**53 else 0


def without_letters_of_other_scripts(value):
    """A host may have letters of any script, which `uri` does not allow: what is meant to be invalid is made so in another way."""
    if isinstance(value, dict):
        return {key: without_letters_of_other_scripts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_letters_of_other_scripts(item) for item in value]
    if isinstance(value, str) and re.match(r"https?://[^/?#]*[^\x00-\x7f]", value, re.IGNORECASE):
        return "no URL"
    return value


def spare_the_key_in_use(case):
    """The list of keys has the one that these requests are made with; a limit of it would end them all."""
    if case.operation.path.startswith("/v1/keys/") and case.meta.generation.mode.is_positive:
        case.path_parameters["id"] = "0" * 24 if case.method == "DELETE" else WORLD["apiKey"]


@schemathesis.hook
def before_call(context, case, kwargs):
    # A change of the headers would bring the key back that is left out on purpose.
    is_without_key = case.meta is not None and getattr(case.meta.phase.data, "parameter", None) == "Authorization"
    # Nothing draws here, so an answer that waits would wait in vain.
    if case.headers and "Prefer" in case.headers and not is_without_key:
        del case.headers["Prefer"]
    if case.meta is None:
        return
    if case.method == "DELETE":
        spare_what_is_needed(case)
    phase = case.meta.phase.name.value
    if phase == "fuzzing" and case.method != "DELETE" and case.meta.generation.mode.is_positive:
        use_existing_ids(case)
    spare_the_key_in_use(case)
    if case.meta.generation.mode.is_positive and isinstance(case.body, (dict, list)):
        case.body = with_exact_numbers(case.body)
    elif case.meta.generation.mode.is_negative and isinstance(case.body, (dict, list)):
        case.body = without_letters_of_other_scripts(case.body)
    # A generated Idempotency-Key repeats, and a repeat is replayed or refused: what it shows may have been deleted since.
    key = (case.headers or {}).get("Idempotency-Key")
    if not is_without_key and isinstance(key, str) and re.fullmatch(r"[!-~]{1,255}", key):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
