"""The part of SARIF 2.1.0 that reports use, as a JSON schema of our own: stricter than the standard's.

Section numbers are those of the OASIS standard. Everything that is not named here is refused, so a report cannot use a
property that the standard does not have; required here is also what code scanning services ask for.
"""

from __future__ import annotations

TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}


def obj(required, **properties):
    """An object with these properties and no others."""
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": properties}


def list_of(items, **limits):
    return {"type": "array", "items": items, **limits}


MESSAGE = obj("text", text=TEXT)  # 3.11
LOGICAL = obj(  # 3.33
    "kind", fullyQualifiedName=TEXT, name=TEXT, kind={"enum": ["function"]}
)
ARTIFACT = obj("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId={"const": "SRCROOT"})  # 3.4
PHYSICAL = obj(  # 3.29, 3.30
    "artifactLocation region",
    artifactLocation=ARTIFACT,
    region=obj("startLine", startLine={"type": "integer", "minimum": 1, "maximum": 2**31 - 1}),
)
LOCATION = obj(  # 3.28
    "logicalLocations",
    id=COUNT,
    message=MESSAGE,
    physicalLocation=PHYSICAL,
    logicalLocations=list_of(LOGICAL, minItems=1, uniqueItems=True),
)
STACK = obj("message frames", message=MESSAGE, frames=list_of(obj("location", location=LOCATION)))  # 3.44, 3.45
SUPPRESSION = obj(  # 3.35
    "kind status justification", kind={"const": "external"}, status={"const": "accepted"}, justification=TEXT
)
RESULT = obj(  # 3.27
    "ruleId ruleIndex level message locations partialFingerprints",
    ruleId=TEXT,
    ruleIndex=COUNT,
    level={"enum": ["warning", "error"]},
    message=MESSAGE,
    locations=list_of(LOCATION, minItems=1, maxItems=1),
    relatedLocations=list_of(LOCATION, uniqueItems=True),
    stacks=list_of(STACK, uniqueItems=True),
    occurrenceCount={"type": "integer", "minimum": 1},
    partialFingerprints=obj("commutant/v1", **{"commutant/v1": TEXT}),
    baselineState={"enum": ["new", "unchanged"]},
    suppressions=list_of(SUPPRESSION, uniqueItems=True),
    properties={"type": "object"},
)
RULE = obj(  # 3.49
    "id shortDescription fullDescription help defaultConfiguration",
    id={"type": "string", "pattern": "^[a-z][a-z-]*$"},
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=obj("level", level={"enum": ["warning", "error"]}),
)
RUN = obj(  # 3.14
    "tool columnKind invocations results",
    tool=obj(
        "driver",
        driver=obj(
            "name version rules", name={"const": "commutant"}, version=TEXT, rules=list_of(RULE, uniqueItems=True)
        ),
    ),
    automationDetails=obj("description", description=MESSAGE),
    columnKind={"const": "unicodeCodePoints"},
    invocations=list_of(
        obj("executionSuccessful", executionSuccessful={"type": "boolean"}, commandLine=TEXT), minItems=1, maxItems=1
    ),
    results=list_of(RESULT),
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **obj(
        "$schema version runs",
        **{"$schema": {"const": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"}},
        version={"const": "2.1.0"},
        runs=list_of(RUN, minItems=1, maxItems=1),
    ),
}
