"""SQLAlchemy: app.py DRIVER HOST PORT USER PASSWORD SCHEMA makes tables with sequences, drops them and makes them again."""

import sys
from urllib.parse import quote

from sqlalchemy import Column, Integer, MetaData, Sequence, String, Table, create_engine, inspect, select

driver, host, port, user, password, schema = sys.argv[1:]
engine = create_engine(f"mariadb+{driver}://{quote(user)}:{quote(password)}@{host}:{port}/{schema}?charset=utf8mb4")
metadata = MetaData()
numbers = Sequence("sa_numbers", metadata=metadata, start=1)
other = Sequence("sa_other", metadata=metadata, schema=schema + "_2")
things = Table("sa_things", metadata, Column("id", Integer, numbers, primary_key=True), Column("name", String(30)))


def look(when):
    i = inspect(engine)
    print(when, i.has_sequence("sa_numbers"), i.has_sequence("sa_other"), i.has_sequence("sa_other", schema=schema + "_2"),
          i.has_sequence("sa_nobody"), i.has_sequence("sa_things"), i.has_table("sa_things"),
          sorted(n for n in i.get_sequence_names() if n.startswith("sa_")), i.get_sequence_names(schema=schema + "_2"),
          i.get_table_names(), i.get_view_names(), [c["name"] for c in i.get_columns("sa_things")] if i.has_table("sa_things") else None)


def use(when):
    with engine.begin() as c:
        for name in ("one", "two"):
            c.execute(things.insert(), {"name": name})
        first = c.execute(things.insert().values(name="three")).inserted_primary_key[0]
        ids = c.execute(select(things.c.id).order_by(things.c.name.desc())).scalars().all()
        print(when, sorted(set(ids)) == sorted(ids), first in ids, c.execute(numbers) > max(ids), c.execute(other) > 0)


look("before")
metadata.create_all(engine)
look("made")
use("used")
metadata.create_all(engine)
look("made twice")
metadata.drop_all(engine)
look("dropped")
metadata.drop_all(engine)
metadata.create_all(engine)
look("made again")
use("used again")
metadata.drop_all(engine)
look("after")
