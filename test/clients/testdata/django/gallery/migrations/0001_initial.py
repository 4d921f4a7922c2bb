"""The tables of the models."""

from django.db import migrations, models


def key():
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            "Album", [("id", key()), ("name", models.CharField(max_length=50, unique=True))], {"db_table": "albums"}),
        migrations.CreateModel(
            "Tag", [("id", key()), ("name", models.CharField(max_length=50))], {"db_table": "tags"}),
        migrations.CreateModel(
            "Picture", [
                ("id", key()),
                ("title", models.CharField(max_length=50)),
                ("album", models.ForeignKey("gallery.album", models.CASCADE, related_name="pictures")),
                ("tags", models.ManyToManyField("gallery.Tag", db_table="pictures_tags")),
            ], {"db_table": "pictures"}),
    ]
