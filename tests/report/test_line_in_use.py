"""What else of a truly shared line is in use, in words."""

from __future__ import annotations

from msgspec import structs

from commutant.mtrace import LineField, Touched
from commutant.report.describe import line_in_use
from tests.campaign.fakes import make_finding

FIELDS = (
    LineField(0, 8, "struct dentry.d_flags"),
    LineField(8, 4, "struct dentry.d_lockref"),
    LineField(16, 16, "struct dentry.d_iname[]"),
    LineField(32, 8, "struct dentry.d_time"),
    LineField(40, 8, "struct dentry.d_sb"),
)
TOUCHED = (
    Touched(0, ((0, 4), (16, 2)), ((8, 4), (32, 8))),
    Touched(1, ((4, 4), (8, 4), (20, 4)), ()),
)


def test_it_says_who_reads_and_who_writes_what_else() -> None:
    finding = structs.replace(make_finding(), fields=FIELDS, touched=TOUCHED)
    assert line_in_use(finding) == "d_flags, d_iname[] (read by both cores); d_time (written by core 0)"


def test_it_says_nothing_where_nothing_else_is_used_or_fields_share_falsely() -> None:
    finding = structs.replace(make_finding(), fields=FIELDS[1:2], touched=TOUCHED)
    assert line_in_use(finding) == ""
    assert line_in_use(structs.replace(finding, fields=FIELDS, sharing="false")) == ""
    assert line_in_use(make_finding()) == ""
