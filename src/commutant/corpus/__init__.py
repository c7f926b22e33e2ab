"""The border that everybody reads: test cases, and the file that holds them.

`testcase` says what a test is and how a line holds it, `values` what it may hold, `file` reads and writes a corpus,
`reading` takes lines apart quickly, `packed` keeps sets of tests as they stand in the file, `words` puts tests into
words.
"""

from commutant.corpus.file import (
    Corpus,
    first_test,
    looks_like_corpus,
    read_corpus,
    select_tests,
    tests_per_set,
    write_corpus,
)
from commutant.corpus.packed import PackedTests, pack
from commutant.corpus.shards import in_order, shard_entry, shard_of_corpus, together
from commutant.corpus.testcase import (
    CORPUS_LINES,
    LEVELS,
    ExpectedOutcome,
    Level,
    Order,
    PlacedCall,
    SetOfCalls,
    SetupStep,
    ShardEntry,
    Step,
    TestCase,
    encode,
    id_of,
)
from commutant.corpus.untested import Untested, UntestedClasses
from commutant.corpus.values import MAX_OUTCOMES, Value
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
    "CORPUS_LINES",
    "LEVELS",
    "MAX_OUTCOMES",
    "Corpus",
    "ExpectedOutcome",
    "Level",
    "Order",
    "PackedTests",
    "PlacedCall",
    "SetOfCalls",
    "SetupStep",
    "ShardEntry",
    "Step",
    "TestCase",
    "Untested",
    "UntestedClasses",
    "Value",
    "arguments_text",
    "call_text",
    "encode",
    "first_test",
    "headline",
    "id_of",
    "in_order",
    "looks_like_corpus",
    "order_text",
    "pack",
    "place_text",
    "placement_text",
    "processes",
    "read_corpus",
    "result_text",
    "same_in_every_order",
    "select_tests",
    "sentence",
    "shard_entry",
    "shard_of_corpus",
    "step_text",
    "tests_per_set",
    "together",
    "value_text",
    "write_corpus",
]
