"""What a hostile or broken client puts where a value belongs: for property-based tests."""

import string

from hypothesis import strategies as st

LONG = "9" * 5000
TEXTS = (
    "", " ", "0", "1", "-1", "²", "٣", LONG, "1" * 20, str(2**63), "1e999", "inf", "nan", "-0.0", "0x10",
    "true", "null", "[]", "{}", "\x00", "a\x00b", "\u202e", "😀", "x" * 5000, "../../etc/passwd",
    "~nosuchuser/x", "/root/x", "%00", "<script>", "' OR 1=1 --", "1,2,3", ",,,", "&a=1", "{{7*7}}",
    "W10", "WzEsMV0", "W251bGwsMV0", "[" * 500, "? [a]\n: b\n", "a: &a [1]\nb: *a\n", "2024-13-45",
    "!!binary /w==", "http://[", "http://h:99999/x", "https://" + "a" * 70 + ".example/" + "x" * 1500,
    "(a+)+$", "(((a{1000}){1000}){1000})", "newest", "all", "inbox", "gold",
)  # fmt: skip
"""W…: cursors of [], [1,1] and [null,1]."""

texts = st.sampled_from(TEXTS) | st.text(max_size=30) | st.text(string.digits, max_size=25)
leaves = (
    texts
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**30, -(10**30), 2**63, 1e308])
)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
