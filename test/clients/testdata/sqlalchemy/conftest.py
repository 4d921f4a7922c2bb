"""SQLAlchemy's own tests of its dialects, by its plugin of pytest.

With RESTART in the environment a sequence that was dropped and is made again begins at 1 again, as these
tests want it: by the statement that seqproxy has for test suites.
"""

import os
import re

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F401, F403: the plugin's hooks

if os.environ.get("RESTART"):

    @event.listens_for(Engine, "after_cursor_execute")
    def restart(connection, cursor, statement, parameters, context, executemany):
        made = re.match(r"CREATE SEQUENCE (\S+)", statement)
        if made:
            cursor.execute(f"ALTER SEQUENCE {made[1]} RESTART WITH 1 FORCE")
