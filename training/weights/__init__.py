"""How the trainer's weights reach the engine: one file per channel, one table (`channels.CHANNELS`).

disk     a folder that the engine reads: every engine, the fallback
nccl     broadcast from the trainer's GPU to the engine's GPUs
ipc      handles of the trainer's memory: trainer and engine on the same GPU

The engine's end is `receiver` (what the policy server does with POST /weights) with one file per engine.
"""
