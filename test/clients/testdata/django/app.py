"""Django: app.py HOST PORT USER PASSWORD SCHEMA PHASE..., where a phase is migrate or use."""

import json
import os
import sys

import django
from django.conf import settings
from django.db import connection, transaction

host, port, user, password, schema, *phases = sys.argv[1:]
sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True
settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.mysql", "HOST": host, "PORT": port, "USER": user, "PASSWORD": password,
        "NAME": schema, "OPTIONS": {"charset": "utf8mb4"},
    }},
    INSTALLED_APPS=["gallery"], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402: the settings come first
from gallery.models import Album, Picture, Tag  # noqa: E402


def plain(v):
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return None if v is None else str(v)


def step(name, told, *queries):
    """What Django takes the rows for, and what they are."""
    rows = []
    for q in queries:
        with connection.cursor() as cursor:
            cursor.execute(q)
            rows += cursor.fetchall()
    print(json.dumps({"step": name, "value": plain([told, rows])}), flush=True)


def albums(*names):
    return "SELECT id, name FROM albums WHERE name IN ('%s') ORDER BY id" % "', '".join(names)


def pictures(where):
    return "SELECT id, title, album_id FROM pictures WHERE %s ORDER BY id" % where


def seen(objects):
    return [(o.pk, o.title, o.album_id) if isinstance(o, Picture) else (o.pk, o.name) for o in objects]


def use():
    one = Album.objects.create(name="one")
    step("one", seen([one]), albums("one"))
    step("several", seen(Album.objects.bulk_create([Album(name="a"), Album(name="b"), Album(name="c")])), albums("a", "b", "c"))

    holiday = Album(name="holiday")
    holiday.save()
    beach = Picture.objects.create(title="beach", album=holiday)
    hill = holiday.pictures.create(title="hill")
    step("relation", seen([holiday, beach, hill]), albums("holiday"), pictures("title IN ('beach', 'hill')"))

    tags = [Tag.objects.create(name="blue"), Tag.objects.create(name="green")]
    beach.tags.set(tags)
    hill.tags.add(tags[1])
    step("many to many", seen(tags) + [(p.pk, t.pk) for p, t in ((beach, tags[0]), (beach, tags[1]), (hill, tags[1]))],
         "SELECT id, name FROM tags ORDER BY id", "SELECT picture_id, tag_id FROM pictures_tags ORDER BY picture_id, tag_id")

    many = Picture.objects.bulk_create([Picture(title="p%d" % n, album=one) for n in range(250)], batch_size=100)
    step("batches", seen(many), pictures("title LIKE 'p%'"))

    given = Album.objects.create(id=500000, name="given")
    behind = Album.objects.create(name="behind it")
    step("explicit", seen([given, behind]), albums("given", "behind it"))

    try:
        with transaction.atomic():
            Album.objects.create(name="undone")
            raise KeyError
    except KeyError:
        after = Album.objects.create(name="after")
    step("undone", seen([after]), albums("undone", "after"))

    found, _ = Album.objects.get_or_create(name="found")
    again, _ = Album.objects.get_or_create(name="found")
    changed, _ = Album.objects.update_or_create(name="made or changed")
    step("found or made", seen([found, changed]), albums("found", "made or changed"))
    step("found again", seen([again]), albums("found"))

    # Without keys in return, on any server.
    Album.objects.bulk_create([Album(name="found"), Album(name="new")], ignore_conflicts=True)
    step("duplicates ignored", seen([Album.objects.get(name="found"), Album.objects.get(name="new")]), albums("found", "new"))


for phase in phases:
    if phase == "migrate":
        call_command("migrate", verbosity=0)
        print(json.dumps({"step": "client", "value": "Django " + django.get_version()}), flush=True)
    else:
        use()
