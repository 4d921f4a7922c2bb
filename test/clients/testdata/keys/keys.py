"""The generated keys of PyMySQL and mysqlclient: keys.py MODULE HOST PORT USER PASSWORD SCHEMA [KEY]."""

import importlib
import json
import sys

module, host, port, user, password, schema = sys.argv[1:7]
key = sys.argv[7] if len(sys.argv) > 7 else ""
db = importlib.import_module(module)
c = db.connect(host=host, port=int(port), user=user, password=password.encode() if module == "pymysql" else password,
               database=schema, charset="utf8mb4", autocommit=True)
cur = c.cursor()
insert = "INSERT INTO photos (%stitle) VALUES " % ("id, " if key else "")
one = "(%s%%s)" % (key + ", " if key else "")


def step(name, first, *titles):
    """The drivers tell the first key; programs count on from it."""
    cur.execute("SELECT id, title FROM photos WHERE title IN %s ORDER BY id", (titles,))
    rows = [[str(id), title] for id, title in cur.fetchall()]
    print(json.dumps({"step": name, "value": [[[str(first + i), t] for i, t in enumerate(titles)], rows]}), flush=True)


cur.execute(insert + one % "'a'")
step("text", cur.lastrowid, "a")
cur.execute(insert + one, ("b",))
step("with arguments", cur.lastrowid, "b")
cur.execute(insert + ", ".join([one] * 3), ("c", "d", "e"))
step("rows", cur.lastrowid, "c", "d", "e")
cur.execute("SELECT LAST_INSERT_ID()")
step("function", cur.fetchone()[0], "c")
if not key:
    # The driver makes one statement of them; with a call among the values it does not.
    cur.executemany(insert + one, [("f",), ("g",), ("h",)])
    step("many", cur.lastrowid, "f", "g", "h")
cur.execute(insert + one + " ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", ("c",))
step("found", cur.lastrowid, "c")
c.close()
