"""Whether a clone woke up as its template was saved: its picture from outside, its agent by a fresh question.

A machine is ended from outside, whatever runs in it, and its clone starts from files that no guest can
write. What is found here is therefore a damaged template or a fault of ours; the desk host rebuilds then.
"""

import json
import secrets
from collections import Counter

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError, NotClean
from workers.desktops.qemu.boot_phases import screen_digest
from workers.desktops.qemu.template_store import Template
from workers.desktops.qemu.vm_process import VmProcess

ANSWER_LIMIT_S = 60.0


class WrongPicture(NotClean):
    """Raised when a clone does not show what its template showed: the template is damaged."""


async def require_same_picture(vm: VmProcess, template: Template) -> None:
    """Before anything runs in the clone. Raises WrongPicture."""
    if await screen_digest(vm) != template.meta.screen_digest:
        raise WrongPicture(f"a clone of template {template.key} does not show the template's screen")


def require_fresh_agent(address: str, template: Template) -> None:
    """The agent answers this clone's own question, and no program is new. Raises NotClean."""
    nonce = secrets.token_hex(16)
    answer = health(address, nonce)
    if not answer:
        return
    if "nonce" not in answer:
        message = "the image is older than its protection from its programs: run `make guest-image`"
        raise EnvError(message, permanent=True)
    if answer["nonce"] != nonce:
        raise NotClean("the agent of a clone did not answer the question that it was asked")
    is_base = not template.meta.parent and not template.meta.snapshot
    if is_base and (more := Counter(answer["programs"].values()) - Counter(template.meta.programs)):
        raise NotClean(f"programs run in a clone that are not in its template: {', '.join(sorted(more))}")


def running_programs(address: str) -> list[str]:
    """Names of the programs in a machine, each as often as it runs; none where its agent cannot tell."""
    answer = health(address)
    return sorted(answer["programs"].values()) if answer else []


def health(address: str, nonce: str = "") -> dict:
    """What our agent says of its machine; nothing from OSWorld's own. Raises EnvError."""
    with AgentClient(address, timeout_s=ANSWER_LIMIT_S) as agent:
        status, raw = agent.call("GET", f"/health?nonce={nonce}")
    if status == 404:
        return {}
    if status != 200:
        raise EnvError(f"the agent's health is {status}: {raw[:200].decode(errors='replace')}")
    try:
        answer = json.loads(raw)
    except ValueError as exc:
        raise EnvError(f"the agent's health is no JSON: {raw[:100]!r}") from exc
    return dict(answer)
