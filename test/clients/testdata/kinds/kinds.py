"""The keys that PyMySQL and mysqlclient tell: kinds.py MODULE HOST PORT USER PASSWORD SCHEMA STEP...

A step has fields between tabs: its name, how the statement is run, the statement, and values."""

import importlib
import json
import sys

module, host, port, user, password, schema = sys.argv[1:7]
db = importlib.import_module(module)
c = db.connect(host=host, port=int(port), user=user, password=password.encode() if module == "pymysql" else password,
               database=schema, charset="utf8mb4", autocommit=True)
cur = c.cursor()

for step in sys.argv[7:]:
    name, how, sql, *values = step.split("\t")
    if how == "prepared":
        continue  # these drivers prepare nothing
    try:
        if how == "batch":
            cur.executemany(sql.replace("?", "%s"), [(v,) for v in values])
        else:
            cur.execute(sql)
        told = [str(row[0]) for row in cur.fetchall()] if how == "rows" else [str(cur.lastrowid)]
    except db.Error as e:
        told = str(e.args[0])
    print(json.dumps({"step": name, "value": told}), flush=True)
c.close()
