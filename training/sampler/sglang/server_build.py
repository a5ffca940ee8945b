"""What an SGLang server is made of, by its own account."""

from training.sampler.engine import EngineBuild, EngineError
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.http_client import SglangError
from training.sampler.sglang.server_pool import ServerPool

UNKNOWN = "unknown"


async def build_of(servers: ServerPool) -> EngineBuild:
    """Of the first server that is up. Raises EngineError when none answers."""
    try:
        info = await servers.ready()[0].client.run(server_endpoints.server_info())
    except (SglangError, IndexError) as error:
        raise EngineError(f"SGLang does not say what it is: {error}") from error
    pictures = info.get("mm_attention_backend") or "default"
    logits = ", fp32 logits" if info.get("enable_fp32_lm_head") else ""
    return EngineBuild(
        engine="sglang",
        version=str(info.get("version", UNKNOWN)),
        kernels=f"attention {info.get('attention_backend', UNKNOWN)}, of pictures {pictures}",
        precision=f"{info.get('dtype', UNKNOWN)}{logits}",
    )
