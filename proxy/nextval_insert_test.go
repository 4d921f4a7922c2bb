package proxy_test

import "testing"

func TestAnInsertWithNumbersIsWhatLastInsertIDWouldBe(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	const all = "SELECT * FROM photos ORDER BY id"
	o.run(t, []script{
		{"VALUES and SET", []string{
			"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'a')",
			insertIDs,
			"INSERT INTO photos (title, id) VALUE ('b', «NEXTVAL(photos)»);",
			"INSERT photos SET title = 'c', id = «nextval(`photos`)»",
			"SELECT ROW_COUNT()",
			"REPLACE INTO photos (id, title) VALUES («NEXTVAL(\"photos\")», 'd')",
			"REPLACE photos SET id = «NEXTVAL('photos')»",
			"INSERT LOW_PRIORITY INTO photos VALUES («NEXTVAL('photos')», 'e', NULL, DEFAULT)",
			insertIDs,
			"INSERT HIGH_PRIORITY INTO photos () VALUES (10, 'no number', NULL, 1)",
			insertIDs,
			all,
		}},
		{"many rows", []string{
			"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'a'), («NEXTVAL('photos')», 'b'), («NEXTVAL('photos')», 'c')",
			insertIDs,
			"INSERT INTO photos (id, parent) VALUES («NEXTVAL('photos')», «NEXTVAL('other')»), («NEXTVAL('photos')», 7), («NEXTVAL('photos')», «NEXTVAL('other')»)",
			insertIDs,
			"SELECT ROW_COUNT()",
			"INSERT INTO photos (parent, id) VALUES («NEXTVAL('other')», «NEXTVAL('photos')»)",
			insertIDs,
			"INSERT INTO keyless VALUES («NEXTVAL('other')», «NEXTVAL('other')» + 1, CONCAT('x', «NEXTVAL('photos')»)), (NULL, -«NEXTVAL('photos')», DEFAULT)",
			insertIDs,
			"SELECT * FROM keyless",
			all,
		}},
		{"beside LAST_INSERT_ID()", []string{
			"SELECT LAST_INSERT_ID(42)",
			"INSERT INTO photos (parent, id) VALUES (LAST_INSERT_ID(), NEXTVAL('photos')) => INSERT INTO photos (parent, id) VALUES (42, LAST_INSERT_ID({p1}))",
			"INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), @@last_insert_id), (NEXTVAL('photos'), @@identity) => " +
				"INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID({p1}), CAST({p0} AS UNSIGNED)), (CAST({p2} AS UNSIGNED), CAST({p0} AS UNSIGNED))",
			insertIDs,
			all,
		}},
		{"into a table with AUTO_INCREMENT", []string{
			"INSERT INTO auto (a, ref) VALUES ('x', «NEXTVAL('photos')»)", // the generated value wins
			insertIDs,
			"INSERT INTO auto (id, a) VALUES («NEXTVAL('photos')», 'y')",
			insertIDs,
			"INSERT INTO auto (a) VALUES ('z')",
			insertIDs,
			"INSERT INTO auto (id, a, ref) VALUES (NULL, 'u', «NEXTVAL('photos')»), (0, 'v', «NEXTVAL('photos')»), («NEXTVAL('photos')», 'w', 1)",
			insertIDs,
			"SELECT * FROM auto ORDER BY id",
		}},
		{"that fails", []string{
			"SELECT LAST_INSERT_ID(42)",
			// The key is a duplicate after the number was evaluated.
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»), (1)",
			"SHOW WARNINGS",
			insertIDs,
			"INSERT INTO photos (id) VALUES (1), («NEXTVAL('photos')»)", // the key is a duplicate before
			insertIDs,
			"SELECT ROW_COUNT()",
			"INSERT INTO nowhere (id) VALUES («NEXTVAL('photos')»)",
			insertIDs,
			"INSERT INTO photos (id, nothing) VALUES («NEXTVAL('photos')», 1)",
			insertIDs,
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')», 1)",
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», REPEAT('x', 200))",
			"SHOW WARNINGS",
			insertIDs,
			all,
		}},
		{"with warnings", []string{
			"SET sql_mode = ''",
			"INSERT INTO photos (id, title, n) VALUES («NEXTVAL('photos')», REPEAT('x', 200), 'y')",
			"SHOW WARNINGS",
			insertIDs,
			"INSERT INTO photos (id, n) VALUES («NEXTVAL('photos')», 99999999999)",
			"SELECT @@warning_count",
			"SHOW COUNT(*) WARNINGS",
			"SELECT ROW_COUNT(), FOUND_ROWS()",
			all,
		}},
		{"in a transaction", []string{
			"BEGIN",
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»)",
			insertIDs,
			"ROLLBACK",
			insertIDs,
			all,
			"START TRANSACTION READ ONLY",
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»)",
			insertIDs,
			"ROLLBACK",
		}},
		{"with odd text around", []string{
			"/* NEXTVAL('photos') */ INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'NEXTVAL(''photos'') \\' \\\\ \" ä ß 漢') -- NEXTVAL('photos')",
			"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')»,\"it's NEXTVAL(photos)\") # NEXTVAL('photos')",
			"INSERT INTO photos /* ; ? */ (id, title)\n VALUES\t(«NEXTVAL('photos')» /*!50000 + 0 */, _latin1'\xe4\\0\\n')",
			"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'a' 'b' N'c' x'64' b'1100101')",
			"SELECT id, HEX(title) FROM photos ORDER BY id",
		}},
		{"with other sql modes", []string{
			"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
			"INSERT INTO photos (title, id) VALUES ('\\', «NEXTVAL('photos')»), ('\\''', «NEXTVAL('photos')»)",
			"SET sql_mode = 'ANSI_QUOTES'",
			"INSERT INTO photos (\"title\", \"id\") VALUES ('\\'', «NEXTVAL(\"photos\")»)",
			"SET sql_mode = 'IGNORE_SPACE,PIPES_AS_CONCAT'",
			"INSERT INTO photos (title, id) VALUES ('a' || 'b', «NEXTVAL ('photos')»)",
			all,
		}},
	})
	// The command-line client converts bytes that are no utf8.
	o.run(t, []script{
		{"in another character set", []string{
			"SET NAMES latin1",
			"INSERT INTO photos (title, id) VALUES ('\xe4\xdf\xff', «NEXTVAL('photos')»)",
			"SET NAMES gbk",
			// The second byte of the character is a backslash, and that of the next would be a
			// quote.
			"INSERT INTO photos (title, id) VALUES ('\xbf\x5c', «NEXTVAL('photos')»)",
			"INSERT INTO photos (title, id) VALUES ('\x81\x5c\\'NEXTVAL(''photos'')', «NEXTVAL('photos')»)",
			"SET NAMES big5",
			"INSERT INTO photos (title, id) VALUES ('\xa4\x5c', «NEXTVAL('photos')»)",
			"SET NAMES utf8mb4",
			"SELECT id, HEX(title) FROM photos ORDER BY id",
		}},
	}, "packets with EOF", "packets without EOF", "go-sql-driver")
}
