"""A pool of SQLAlchemy whose server goes away: lost.py MODULE HOST PORT USER PASSWORD SCHEMA."""

import sys
import time

import sqlalchemy as sa

module, host, port, user, password, schema = sys.argv[1:]
url = sa.engine.URL.create("mysql+" + module, user, password, host, int(port), schema, query={"charset": "utf8mb4"})
engine = sa.create_engine(url, pool_size=2, max_overflow=0, connect_args={
    "password": password.encode() if module == "pymysql" else password})  # PyMySQL would take a text for latin1


def lost(run):
    try:
        run()
    except sa.exc.DBAPIError as e:
        return type(e).__name__, e.orig.args[0], e.connection_invalidated
    return "nothing"


with engine.connect() as idle, engine.connect() as busy:
    idle.execute(sa.text("SELECT 1"))
    print("busy", *lost(lambda: busy.execute(sa.text("SELECT SLEEP(100)"))))
for _ in range(600):
    try:
        with engine.connect() as c, engine.connect() as d:
            print("again", c.execute(sa.text("SELECT 1")).scalar() + d.execute(sa.text("SELECT 2")).scalar())
            break
    except sa.exc.DBAPIError:
        time.sleep(0.1)
print("in the pool", engine.pool.checkedin())
