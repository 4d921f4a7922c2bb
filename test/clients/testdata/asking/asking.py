"""Asks the proxy by PyMySQL and mysqlclient: asking.py MODULE HOST PORT USER PASSWORD SCHEMA."""

import importlib
import sys

module, host, port, user, password, schema = sys.argv[1:]
db = importlib.import_module(module)
c = db.connect(host=host, port=int(port), user=user, password=password.encode() if module == "pymysql" else password,
               database=schema, charset="utf8mb4")
cur = c.cursor()
for how in ("text", "again"):
    cur.execute("SHOW SEQPROXY VERSION")
    print(how, dict(zip((d[0] for d in cur.description), cur.fetchone()))["version"])
cur.execute("SHOW SEQPROXY STATUS LIKE %s", ("drain%",))
print("status", *cur.fetchone())
cur.execute("SHOW SEQPROXY SESSIONS")
print("session", cur.fetchone()[1])
cur.execute("SELECT DATABASE(), @@version")
print("schema", cur.fetchone()[0])
c.show_warnings()
c.ping()
c.commit()
c.close()
