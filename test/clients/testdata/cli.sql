-- What the command-line clients run. Their output is the transcript: lines of JSON, and what
-- else they print.
SELECT JSON_OBJECT('step', 'connect', 'value', VERSION());
SELECT JSON_OBJECT('step', 'session', 'value', JSON_ARRAY(CURRENT_USER(), USER(), DATABASE(), @@character_set_client, @@sql_mode, CONCAT(@@autocommit, '')));
SELECT JSON_OBJECT('step', 'types', 'value', NULL);
SELECT id, i, big, exact, d, dt, t, f, HEX(b), s, e, y, HEX(bits), j FROM types ORDER BY id;
UPDATE types SET i = i + 1 WHERE id = 1;
SELECT JSON_OBJECT('step', 'text', 'value', JSON_ARRAY(CONCAT(ROW_COUNT(), ''), (SELECT CONCAT(i, '') FROM types WHERE id = 1), 'it''s', 'größe 🌊'));
PREPARE s FROM 'SELECT JSON_OBJECT(''step'', ''prepared'', ''value'', JSON_ARRAY(CONCAT(? + 1, ''''), ?, HEX(?), ?))';
SET @n = 41, @s = 'größe 🌊', @b = x'00ff27', @null = NULL;
EXECUTE s USING @n, @s, @b, @null;
INSERT INTO photos (title) VALUES ('sea');
SET @first = LAST_INSERT_ID();
PREPARE i FROM 'INSERT INTO photos (title) VALUES (?)';
SET @title = 'hill';
EXECUTE i USING @title;
SET @second = LAST_INSERT_ID();
INSERT INTO photos (title) VALUES ('a'), ('b'), ('c');
SELECT JSON_OBJECT('step', 'insert id', 'value', JSON_ARRAY(CONCAT(@first, ''), CONCAT(@second, ''), CONCAT(LAST_INSERT_ID(), '')));
SELECT COUNT(*) INTO @before FROM photos;
START TRANSACTION;
INSERT INTO photos (title) VALUES ('gone');
ROLLBACK;
SELECT COUNT(*) INTO @rolled FROM photos;
START TRANSACTION;
INSERT INTO photos (title) VALUES ('kept');
COMMIT;
SELECT JSON_OBJECT('step', 'transaction', 'value', JSON_ARRAY(CONCAT(@before, ''), CONCAT(@rolled, ''), CONCAT((SELECT COUNT(*) FROM photos), '')));
INSERT INTO big VALUES (1, '@BIG@');
SELECT CONCAT('{"step": "big", "value": ["', LENGTH(data), '", "', SHA2(data, 256), '", "', REPLACE(data, '\0', '.'), '"]}') FROM big;
INSERT INTO photos (title) VALUES ('sea');
SELECT * FROM nothing;
SELEKT 1;
SELECT JSON_OBJECT('step', 'after', 'value', JSON_ARRAY(JSON_ARRAY('1')));
SELECT JSON_OBJECT('step', 'results', 'value', NULL);
CALL two(7, @twice);
SELECT @twice;
DELIMITER //
SELECT 1; DO 1; SELECT 'two' //
DELIMITER ;
LOAD DATA LOCAL INFILE '@INFILE@' INTO TABLE words;
SELECT JSON_OBJECT('step', 'infile', 'value', JSON_ARRAY(CONCAT(ROW_COUNT(), ''), CONCAT((SELECT COUNT(*) FROM words), ''), CONCAT((SELECT SUM(n) FROM words), '')));
LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words;
