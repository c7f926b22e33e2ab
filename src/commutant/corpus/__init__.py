"""The border that everybody reads: test cases, and the file that holds them.

`testcase` says what a test is, `file` reads and writes a corpus of them, `checks` and `reading` take lines apart that
may have been written by anybody, `packed` keeps sets of tests as they stand in the file, `words` puts tests into words.
"""

from commutant.corpus.file import Corpus, looks_like_corpus, read_corpus, select_tests, tests_per_set, write_corpus
from commutant.corpus.packed import PackedTests, pack
from commutant.corpus.testcase import (
    LEVELS,
    ExpectedOutcome,
    Level,
    Order,
    PlacedCall,
    SetOfCalls,
    Step,
    TestCase,
    Value,
    call_json,
    calls_json,
    encode,
    id_of,
    observe_json,
    orders_json,
    setup_json,
)
from commutant.corpus.untested import Untested, UntestedClasses
from commutant.corpus.words import (
    arguments_text,
    call_text,
    headline,
    order_text,
    place_text,
    placement_text,
    processes,
    result_text,
    same_in_every_order,
    sentence,
    step_text,
    value_text,
)

__all__ = [
    "LEVELS",
    "Corpus",
    "ExpectedOutcome",
    "Level",
    "Order",
    "PackedTests",
    "PlacedCall",
    "SetOfCalls",
    "Step",
    "TestCase",
    "Untested",
    "UntestedClasses",
    "Value",
    "arguments_text",
    "call_json",
    "call_text",
    "calls_json",
    "encode",
    "headline",
    "id_of",
    "looks_like_corpus",
    "observe_json",
    "order_text",
    "orders_json",
    "pack",
    "place_text",
    "placement_text",
    "processes",
    "read_corpus",
    "result_text",
    "same_in_every_order",
    "select_tests",
    "sentence",
    "setup_json",
    "step_text",
    "tests_per_set",
    "value_text",
    "write_corpus",
]
