"""SQLAlchemy connects: sqlalchemy.py DRIVER HOST PORT USER PASSWORD SCHEMA."""

import sys

# A script's directory comes first where modules are looked for, and this one has the names of some.
del sys.path[0]

from sqlalchemy import create_engine, text  # noqa: E402: the path comes first
from sqlalchemy.engine import URL  # noqa: E402

driver, host, port, user, password, schema = sys.argv[1:]
url = URL.create("mysql+" + driver, user, password, host, int(port), schema, {"charset": "utf8mb4"})
for options in {}, {"isolation_level": "READ COMMITTED", "pool_pre_ping": True}:
    engine = create_engine(url, **options)
    for _ in range(2):
        with engine.connect() as c:
            c.execute(text("SHOW SEQPROXY VERSION"))
            if hasattr(c, "commit"):
                c.commit()
