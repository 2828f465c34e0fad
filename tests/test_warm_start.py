"""What commands import when everything is compiled: no numba, and little that they do not need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawler.small_server import PLACEHOLDER
from trapline.compiled import jit
