"""JSON documents, each declared once; see `declared`."""

from commutant.documents.declared import (
    Count,
    Document,
    DocumentError,
    Measure,
    Part,
    Percent,
    builtins,
    encode,
    read,
    schema,
    schema_keywords,
    text,
)

__all__ = [
    "Count",
    "Document",
    "DocumentError",
    "Measure",
    "Part",
    "Percent",
    "builtins",
    "encode",
    "read",
    "schema",
    "schema_keywords",
    "text",
]
