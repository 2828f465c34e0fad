"""The former place of the server models, which are now in `trapline.servers`."""

from trapline.servers.model import MODELS as MODELS
from trapline.servers.model import ServerModel as ServerModel
from trapline.servers.model import model_named as model_named
from trapline.servers.sampled import PageSeconds as PageSeconds
from trapline.servers.sampled import modelled_servers as modelled_servers
from trapline.servers.sampled import page_seconds as page_seconds
