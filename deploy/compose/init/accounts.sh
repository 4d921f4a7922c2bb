#!/bin/sh
# Run once by each server of compose.yaml when its data are new: the accounts with the least rights
# (docs/security.md), and an example schema, album0 on db0 and album1 on db1.
set -eu
album="album${HOSTNAME#db}"
mariadb --user=root --password="$MARIADB_ROOT_PASSWORD" <<SQL
CREATE USER IF NOT EXISTS 'seqproxy'@'%' IDENTIFIED BY '$SEQUENCE_PASSWORD';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON seqproxy.* TO 'seqproxy'@'%';
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY '$APP_PASSWORD';
GRANT ALL PRIVILEGES ON $album.* TO 'app'@'%';
CREATE DATABASE IF NOT EXISTS $album;
CREATE TABLE IF NOT EXISTS $album.photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(100) NOT NULL) ENGINE=InnoDB;
SQL
