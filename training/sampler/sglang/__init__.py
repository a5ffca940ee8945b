"""SGLang behind the policy server: its HTTP calls, its processes, and what it loads of ours.

Nothing here imports `sglang` except the packages `processors` and `models`, which SGLang's own processes
import (docs/adr/0021-sglang.md). Pinned release: requirements/sglang.txt.
"""
