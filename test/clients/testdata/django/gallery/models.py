"""Albums, their pictures, and tags on these."""

from django.db import models


class Album(models.Model):
    name = models.CharField(max_length=50, unique=True)

    class Meta:
        db_table = "albums"


class Tag(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        db_table = "tags"


class Picture(models.Model):
    title = models.CharField(max_length=50)
    album = models.ForeignKey(Album, models.CASCADE, related_name="pictures")
    tags = models.ManyToManyField(Tag, db_table="pictures_tags")

    class Meta:
        db_table = "pictures"
