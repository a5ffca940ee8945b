"""The protocols that the env server speaks, all on one port."""

from workers.env_server.dialects.areal.protocol import AREAL
from workers.env_server.dialects.contract import Dialect
from workers.env_server.dialects.openenv.web_socket import OPENENV
from workers.env_server.dialects.sandboxes.protocol import SANDBOXES
from workers.env_server.dialects.slime.protocol import SLIME

DIALECTS: tuple[Dialect, ...] = (SLIME, AREAL, SANDBOXES, OPENENV)
