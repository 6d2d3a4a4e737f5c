from .lock import *  # noqa: F403
from .lock import __all__ as __all__
