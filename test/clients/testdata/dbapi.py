"""PyMySQL and mysqlclient, which have one interface: dbapi.py MODULE HOST PORT USER PASSWORD SCHEMA."""

import importlib
import json
import hashlib
import os
import sys

module, host, port, user, password, schema = sys.argv[1:]
db = importlib.import_module(module)
login = os.environ["LOGIN"]


def plain(v):
    """v as the transcript shows it."""
    if v is None:
        return None
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, (bytes, bytearray)):
        return v.hex()
    return str(v)


def step(name, value):
    print(json.dumps({"step": name, "value": plain(value)}), flush=True)


def connect(password):
    more = {}
    if login == "tls":
        more["ssl"] = {"ca": os.environ["CA"]}
    if login == "compress":
        more["compress"] = True
    if module == "pymysql":
        more["max_allowed_packet"] = 64 << 20
        password = password.encode()  # it would take a text for latin1
    more["client_flag"] = importlib.import_module(module + ".constants.CLIENT").MULTI_STATEMENTS
    return db.connect(host=host, port=int(port), user=user, password=password, database=schema,
                      charset="utf8mb4", local_infile=True, **more)


def refused(f):
    """What the error says: code, state and text. These drivers hide the state."""
    try:
        f()
    except db.Error as e:
        return [e.args[0], None, e.args[1]]
    return ["no error", None, None]


version = getattr(db, "VERSION_STRING", None) or db.__version__
step("client", version)
c = connect(password)
cur = c.cursor()
step("connect", c.get_server_info())


def rows(sql, args=None):
    cur.execute(sql, args)
    return cur.fetchall()


step("session", rows(os.environ["SESSION"]))

cur.execute("SELECT * FROM types ORDER BY id")
step("types", [[d[:2] for d in cur.description], cur.fetchall()])
step("text", [cur.execute("UPDATE types SET i = i + %s WHERE id = %s", (1, 1)), cur.rowcount, rows("SELECT i FROM types"),
              rows("SELECT %s, %s", ("it's", "größe 🌊"))])

# No server-side statements in these drivers, but SQL has them.
cur.execute("PREPARE s FROM 'SELECT ? + 1, ?, HEX(?), ? IS NULL'")
cur.execute("SET @n = 41, @s = 'größe 🌊', @b = x'00ff27', @null = NULL")
first = rows("EXECUTE s USING @n, @s, @b, @null")
cur.execute("SET @n = -1, @s = ''")
step("prepared", [first, rows("EXECUTE s USING @n, @s, @s, @n")])

ids = []
for titles in (["sea"], ["hill"], ["a", "b", "c"]):
    cur.execute("INSERT INTO photos (title) VALUES " + ", ".join(["(%s)"] * len(titles)), titles)
    ids.append(cur.lastrowid)
c.commit()
step("insert id", ids)

counts = [rows("SELECT COUNT(*) FROM photos")[0][0]]
c.begin()
cur.execute("INSERT INTO photos (title) VALUES ('gone')")
c.rollback()
counts += rows("SELECT COUNT(*) FROM photos")[0]
c.begin()
cur.execute("INSERT INTO photos (title) VALUES ('kept')")
c.commit()
counts += rows("SELECT COUNT(*) FROM photos")[0]
step("transaction", counts)

size = int(os.environ["BIG"])
big = (b"0123456789abcde\x00" * (size // 16 + 1))[:size]
cur.execute("INSERT INTO big VALUES (1, %s)", (db.Binary(big),))
c.commit()
there = rows("SELECT LENGTH(data), SHA2(data, 256) FROM big")[0]
back = rows("SELECT data FROM big")[0][0]
step("big", [*there, len(back), hashlib.sha256(back).hexdigest()])

step("error", [refused(lambda: cur.execute(sql)) for sql in
               ("INSERT INTO photos (title) VALUES ('sea')", "SELECT * FROM nothing", "SELEKT 1")])
step("after", rows("SELECT 1"))

results = []
cur.execute("CALL two(7, @twice)")
while True:
    results.append(cur.fetchall())
    if not cur.nextset():
        break
results.append(rows("SELECT @twice"))
cur.execute("SELECT 1; SELECT 'two'")
while True:
    results.append(cur.fetchall())
    if not cur.nextset():
        break
step("results", results)

cur.execute("LOAD DATA LOCAL INFILE '%s' INTO TABLE words" % os.environ["INFILE"])
c.commit()
loaded = [cur.rowcount, *rows("SELECT COUNT(*), SUM(n), MIN(word) FROM words")]
missing = refused(lambda: cur.execute("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words"))
step("infile", [loaded, missing[0] != "no error", rows("SELECT COUNT(*) FROM words")])

if os.environ["SEQUENCE"]:
    cur.execute("INSERT INTO keyed VALUES (NEXTVAL('" + os.environ["SEQUENCE"] + "'), %s)", (login,))
    told = cur.lastrowid
    c.commit()
    step("nextval", [told, *rows("SELECT LAST_INSERT_ID()")[0], *rows("SELECT MAX(id) FROM keyed")[0]])

c.close()
step("refused", refused(lambda: connect("wrong")))
