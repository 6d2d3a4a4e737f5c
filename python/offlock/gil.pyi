from .lock import *
