package proxy_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/sequence"
)

// asked are the statements that clients send when they connect and when people look around
// in them, as they were seen in their logs or stand in their sources.
var asked = map[string][]string{
	"DBeaver": {
		"/* mysql-connector-j-8.3.0 (Revision: 805f872a57875f311cb82487efcfb070411a3fa0) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, " +
			"@@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, " +
			"@@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, " +
			"@@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, " +
			"@@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, " +
			"@@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout",
		"SET character_set_results = NULL", "SET autocommit=1", "SET SQL_SELECT_LIMIT=DEFAULT", "SET SQL_SELECT_LIMIT=200",
		"/* ApplicationName=DBeaver 24.0.0 - Main */ SELECT DATABASE()",
		"/* ApplicationName=DBeaver 24.0.0 - Main */ SET net_write_timeout=600000",
		"/* ApplicationName=DBeaver 24.0.0 - Main */ SELECT @@session.transaction_isolation",
		"SELECT @@session.transaction_read_only", "SELECT @@session.tx_read_only",
		"/* ApplicationName=DBeaver 24.0.0 - Main */ SHOW PLUGINS",
		"/* ApplicationName=DBeaver 24.0.0 - Main */ SHOW ENGINES",
		"SHOW CHARSET", "SHOW COLLATION", "SHOW VARIABLES LIKE 'lower_case_table_names'",
		"SELECT @@GLOBAL.character_set_server,@@GLOBAL.collation_server", "show databases",
		"/* ApplicationName=DBeaver 24.0.0 - Metadata */ SELECT * FROM information_schema.TABLES t\nWHERE\n\tt.TABLE_SCHEMA = 'information_schema'\n\tAND t.TABLE_NAME = 'CHECK_CONSTRAINTS'",
		"SHOW FULL TABLES FROM `gallery`", "SHOW TABLE STATUS FROM `gallery`",
		"SHOW TRIGGERS FROM `gallery`", "SHOW EVENTS FROM `gallery`",
		"SELECT * FROM information_schema.ROUTINES\nWHERE ROUTINE_SCHEMA='gallery'\nORDER BY ROUTINE_NAME",
		"SELECT * FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA='gallery' ORDER BY ORDINAL_POSITION",
		"SELECT * FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA='gallery' AND TABLE_NAME='photos' ORDER BY PARTITION_ORDINAL_POSITION,SUBPARTITION_ORDINAL_POSITION",
		"SELECT kc.CONSTRAINT_NAME,kc.TABLE_NAME,kc.COLUMN_NAME,kc.ORDINAL_POSITION\nFROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kc\n" +
			"WHERE kc.TABLE_SCHEMA='gallery' AND kc.REFERENCED_TABLE_NAME IS NULL\nORDER BY kc.CONSTRAINT_NAME,kc.ORDINAL_POSITION",
		"SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE, tc.TABLE_NAME FROM information_schema.CHECK_CONSTRAINTS cc, information_schema.TABLE_CONSTRAINTS tc " +
			"WHERE cc.CONSTRAINT_SCHEMA = 'gallery' AND tc.CONSTRAINT_NAME = cc.CONSTRAINT_NAME",
		"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'gallery' LIMIT 0, 200",
		"SHOW SESSION STATUS", "SHOW GLOBAL STATUS", "SHOW GLOBAL VARIABLES", "SHOW FULL PROCESSLIST", "SHOW PRIVILEGES", "SHOW WARNINGS", "SELECT 1",
		"SELECT * FROM information_schema.PROCESSLIST LIMIT 0, 200", "SELECT * FROM information_schema.PROCESSLIST\nORDER BY TIME DESC\nLIMIT 0, 200",
	},
	"Connector/J": {
		"SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, CASE WHEN TABLE_TYPE='BASE TABLE' THEN CASE WHEN TABLE_SCHEMA = 'mysql' OR " +
			"TABLE_SCHEMA = 'performance_schema' THEN 'SYSTEM TABLE' ELSE 'TABLE' END WHEN TABLE_TYPE='TEMPORARY' THEN 'LOCAL_TEMPORARY' ELSE TABLE_TYPE END AS TABLE_TYPE, " +
			"TABLE_COMMENT AS REMARKS, NULL AS TYPE_CAT, NULL AS TYPE_SCHEM, NULL AS TYPE_NAME, NULL AS SELF_REFERENCING_COL_NAME, NULL AS REF_GENERATION " +
			"FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'gallery' ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME",
		"SELECT ROUTINE_SCHEMA AS PROCEDURE_CAT, NULL AS PROCEDURE_SCHEM, ROUTINE_NAME AS PROCEDURE_NAME, NULL, CASE WHEN ROUTINE_TYPE = 'PROCEDURE' THEN 1 ELSE 0 END AS PROCEDURE_TYPE " +
			"FROM INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_NAME LIKE '%' ORDER BY ROUTINE_SCHEMA, ROUTINE_NAME",
	},
	"MariaDB Connector/J": {
		"set autocommit=1, session_track_schema=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')",
		"SELECT @@max_allowed_packet, @@wait_timeout", "SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment",
		"SET session_track_system_variables = CONCAT(@@session_track_system_variables, ',autocommit')",
		"SHOW VARIABLES WHERE Variable_name in ('max_allowed_packet','system_time_zone','time_zone','auto_increment_increment')",
	},
	"HeidiSQL": {
		"SELECT CONNECTION_ID()", "SET NAMES utf8mb4", "SHOW VARIABLES", "SHOW /*!50002 GLOBAL */ STATUS", "SHOW STATUS", "SELECT NOW()",
		"SHOW VARIABLES LIKE 'skip_name_resolve'", "SHOW VARIABLES LIKE 'Ssl_cipher'", "SHOW DATABASES", "SHOW SCHEMAS", "SHOW COLLATION", "SHOW CHARSET", "SHOW ENGINES",
		"SHOW VARIABLES LIKE 'collation_server'", "SHOW STATUS LIKE 'Threads_connected'",
		"SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME='gallery'",
		"SHOW TABLE STATUS FROM `gallery`", "SHOW FUNCTION STATUS WHERE `Db`='gallery'", "SHOW PROCEDURE STATUS WHERE `Db`='gallery'", "SHOW TRIGGERS FROM `gallery`",
		"SELECT *, EVENT_SCHEMA AS `Db`, EVENT_NAME AS `Name` FROM information_schema.`EVENTS` WHERE `EVENT_SCHEMA`='gallery'",
		"SELECT * FROM `information_schema`.`COLUMNS` WHERE TABLE_SCHEMA='gallery' AND TABLE_NAME='photos' ORDER BY ORDINAL_POSITION",
		"SELECT * FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE   CONSTRAINT_SCHEMA='gallery'   AND TABLE_NAME='photos'   AND REFERENCED_TABLE_NAME IS NOT NULL",
		"SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE   TABLE_SCHEMA='gallery'   AND TABLE_NAME='photos'   AND REFERENCED_TABLE_NAME IS NOT NULL",
		"SHOW OPEN TABLES FROM `gallery` WHERE `in_use`!=0", "SHOW FULL PROCESSLIST", "SELECT * FROM information_schema.PROCESSLIST",
		"SELECT `User`, `Host`, '' AS Password FROM `mysql`.`user`",
		"USE `gallery`", "SHOW WARNINGS",
	},
	"MySQL Workbench": {
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET CHARACTER SET utf8", "SET NAMES utf8", "SET SQL_SAFE_UPDATES=1", "SELECT CONNECTION_ID()",
		"SHOW SESSION STATUS LIKE 'Ssl_cipher'", "SELECT current_user()", "SHOW SESSION VARIABLES LIKE 'lower_case_table_names'", "SHOW SESSION VARIABLES LIKE 'sql_mode'",
		"SHOW SESSION VARIABLES LIKE 'version_comment'", "SHOW SESSION VARIABLES LIKE 'version'", "SELECT VERSION()", "SELECT DATABASE()", "SHOW DATABASES ", "SHOW DATABASES",
		"SHOW GLOBAL VARIABLES", "SHOW GLOBAL STATUS", "SHOW PLUGINS", "SHOW ENGINES", "SHOW VARIABLES LIKE 'character_set_server'", "show character set where charset = 'utf8mb4'",
		"SELECT `VARIABLE_VALUE` FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'version'",
		"SHOW FULL TABLES FROM `gallery`", "SHOW PROCEDURE STATUS WHERE Db='gallery'", "SHOW FUNCTION STATUS WHERE Db='gallery'",
		"SELECT name, type FROM mysql.proc WHERE db = 'gallery'",
		"SELECT st.* FROM information_schema.STATISTICS st WHERE st.TABLE_SCHEMA = 'gallery'", "SHOW SLAVE STATUS", "SHOW REPLICA STATUS", "SHOW PROCESSLIST",
	},
	"phpMyAdmin": {
		"SELECT @@version, @@version_comment", "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'", "SET collation_connection = 'utf8mb4_unicode_ci'", "SET lc_messages = 'en_US'",
		"SHOW SESSION VARIABLES LIKE 'FOREIGN_KEY_CHECKS'", "SELECT CURRENT_USER()", "SELECT CURRENT_USER();", "SELECT @@lower_case_table_names", "SHOW GRANTS", "SHOW GRANTS FOR CURRENT_USER()",
		"SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA`", "SELECT COUNT(*) FROM `INFORMATION_SCHEMA`.`SCHEMATA` WHERE TRUE",
		"SELECT `PRIVILEGE_TYPE` FROM `INFORMATION_SCHEMA`.`USER_PRIVILEGES` WHERE GRANTEE='''u''@''%'''",
		"SELECT `CHARACTER_SET_NAME` AS `Charset`, `DEFAULT_COLLATE_NAME` AS `Default collation`, `DESCRIPTION` AS `Description`, `MAXLEN` AS `Maxlen` FROM `information_schema`.`CHARACTER_SETS`",
		"SELECT `COLLATION_NAME` AS `Collation`, `CHARACTER_SET_NAME` AS `Charset`, `ID` AS `Id`, `IS_DEFAULT` AS `Default`, `IS_COMPILED` AS `Compiled`, `SORTLEN` AS `Sortlen` FROM `information_schema`.`COLLATIONS`",
		"SHOW VARIABLES LIKE 'version_comment'", "SHOW GLOBAL STATUS LIKE 'Uptime'", "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Com_%' AND Value != 0", "SHOW PLUGINS", "SHOW MASTER STATUS",
		"SHOW SLAVE STATUS", "SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SELECT 1 FROM mysql.user LIMIT 1", "SHOW TABLES FROM `gallery`", "SHOW TABLE STATUS FROM `gallery`",
		"SELECT *, `TABLE_SCHEMA` AS `Db`, `TABLE_NAME` AS `Name`, `TABLE_TYPE` AS `TABLE_TYPE`, `ENGINE` AS `Engine`, `TABLE_ROWS` AS `Rows` FROM `information_schema`.`TABLES` t " +
			"WHERE `TABLE_SCHEMA` IN ('gallery') ORDER BY Name ASC LIMIT 250 OFFSET 0",
		"SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'gallery' AND TABLE_NAME = 'photos'",
		"SELECT UNIX_TIMESTAMP()", "SELECT @@have_ssl", "SHOW BINARY LOG STATUS", "SHOW PROFILES",
		"SELECT DISTINCT `User`, `Host` FROM `mysql`.`user` ORDER BY `User`, `Host`",
	},
	"TablePlus": {
		"SET NAMES utf8mb4", "SHOW VARIABLES WHERE Variable_name = 'version' OR Variable_name = 'version_comment'", "SELECT @@hostname, @@port", "SHOW DATABASES",
		"SELECT table_name AS name, table_type AS type FROM information_schema.tables WHERE table_schema = 'gallery' ORDER BY table_name",
		"SELECT routine_name AS name, routine_type AS type FROM information_schema.routines WHERE routine_schema = 'gallery'",
		"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('information_schema', 'mysql')",
	},
	"PyMySQL":                {"SET AUTOCOMMIT = 0", "SET NAMES utf8mb4", "SELECT VERSION()", "COMMIT", "ROLLBACK", "SHOW WARNINGS"},
	"mysqlclient":            {"SET NAMES utf8mb4", "set autocommit=0", "SHOW WARNINGS"},
	"mysql-connector-python": {"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_0900_ai_ci'", "SET @@session.autocommit = OFF", "SET time_zone = '+00:00'", "SET sql_mode = 'TRADITIONAL'"},
	"SQLAlchemy": {
		"SELECT @@transaction_isolation", "SELECT DATABASE()", "SELECT @@sql_mode", "SELECT @@lower_case_table_names", "select @@version_comment", "SHOW VARIABLES LIKE 'sql_mode'",
		"SELECT 'test plain returns' AS anon_1", "show variables like 'lower_case_table_names'", "SELECT schema_name FROM information_schema.schemata", "SHOW FULL TABLES FROM `gallery`",
		"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'gallery' AND table_name = 'photos'",
	},
	"Django": {
		"SET SQL_AUTO_IS_NULL = 0", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET autocommit = 1",
		"SELECT @@SQL_AUTO_IS_NULL",
		"SELECT table_name, table_type, table_comment FROM information_schema.tables WHERE table_schema = 'gallery'",
	},
	"Rails": {
		"SET NAMES utf8mb4,  @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'),  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
		"SELECT VERSION()", "SELECT @@max_allowed_packet", "SELECT table_name FROM information_schema.tables WHERE table_schema = 'gallery' AND table_type = 'BASE TABLE'",
	},
	"mysql2":        {"SET autocommit=1", "SELECT 1", "SELECT 1 AS one", "SET SESSION group_concat_max_len = 100000"},
	"go-sql-driver": {"SELECT @@max_allowed_packet", "SET NAMES utf8mb4", "START TRANSACTION", "COMMIT"},
	"ODBC":          {"SET NAMES utf8", "SET character_set_results = NULL", "SET SQL_AUTO_IS_NULL = 0", "select database()", "SELECT @@tx_isolation", "SET @@sql_select_limit=DEFAULT"},
	"JetBrains": {
		"select @@version, @@version_comment, @@lower_case_table_names, database(), @@session.auto_increment_increment", "SET SESSION net_write_timeout = 60",
		"select schema_name, default_character_set_name, default_collation_name from information_schema.schemata", "show variables like 'aurora\\_version'",
		"select table_name, table_type, table_comment, engine, table_collation, create_options from information_schema.tables where table_schema = 'gallery'",
		"select ordinal_position, column_name, column_type, column_default, generation_expression, table_name, column_comment, is_nullable, extra, collation_name " +
			"from information_schema.columns where table_schema = 'gallery' order by table_name, ordinal_position",
		"select grantee, privilege_type from information_schema.user_privileges order by grantee",
	},
}

func TestWhatClientsAskIsAnsweredAtTheAdminAddress(t *testing.T) {
	for name, down := range map[string]bool{"up": false, "every server down": true} {
		t.Run(name, func(t *testing.T) {
			const addr = "127.0.0.1:1" // where nobody listens
			s := setup{AdminAddress: true, Proxy: withWatcher}
			if down {
				s.Backend = func(o *backend.Options) { o.Shards[0].Nodes = []string{addr} }
				s.Sequence = func(o *sequence.Options) { o.Servers[0].Addr, o.AllocateTimeout = addr, time.Second }
			}
			e := newEnv(t, s)
			for client, statements := range asked {
				for _, schema := range []string{"", "gallery"} {
					texts := e.AdminConn(t, func(c *mysql.Config) { as(watcher)(c); c.DBName = schema })
					for _, text := range statements {
						if err := allOf(texts.QueryContext(t.Context(), text)); err != nil {
							t.Errorf("%s: %s: %v", client, text, err)
						}
					}
				}
				prepares := e.AdminConn(t, nil)
				for _, text := range statements {
					if strings.HasPrefix(text, "USE") {
						continue // no server prepares it
					}
					st, err := prepares.PrepareContext(t.Context(), text)
					if err == nil {
						err = allOf(st.QueryContext(t.Context()))
						st.Close()
					}
					if err != nil {
						t.Errorf("%s: prepared: %s: %v", client, text, err)
					}
				}
			}
		})
	}
}

// allOf reads a result to its end.
func allOf(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(sql.RawBytes)
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// columnFamilies are the names and kinds of types of a result's columns.
func columnFamilies(t *testing.T, c *sql.Conn, query string, prepared bool) (names, types []string, err error) {
	t.Helper()
	var rows *sql.Rows
	if prepared {
		st, err := c.PrepareContext(t.Context(), query)
		if err != nil {
			return nil, nil, err
		}
		defer st.Close()
		rows, err = st.QueryContext(t.Context())
		if err != nil {
			return nil, nil, err
		}
	} else if rows, err = c.QueryContext(t.Context(), query); err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range columns {
		names = append(names, column.Name())
		family := "text"
		switch kind := strings.TrimPrefix(column.DatabaseTypeName(), "UNSIGNED "); kind {
		case "BIGINT", "INT", "SMALLINT", "TINYINT":
			family = "integer"
		case "DATETIME", "TIMESTAMP":
			family = "time"
		case "DECIMAL", "DOUBLE", "FLOAT":
			family = "fraction"
		}
		types = append(types, family)
	}
	return names, types, nil
}

func TestMetadataAtTheAdminAddressHasTheColumnsOfTheServer(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	schema := e.Schemas[0]
	direct, admin := e.DirectConn(t, 0, schema, nil), e.AdminConn(t, func(c *mysql.Config) { c.DBName = schema })
	exact := []string{
		"SHOW VARIABLES", "SHOW GLOBAL STATUS LIKE 'Uptime'", "SHOW DATABASES", "SHOW SCHEMAS LIKE 'nothing%'", "SHOW TABLES", "SHOW FULL TABLES LIKE 'photos'",
		"SHOW TABLES FROM information_schema WHERE 1 = 0", "SHOW TABLES WHERE 1 = 0", "SHOW TABLE STATUS", "SHOW TABLE STATUS LIKE 'photos'", "SHOW OPEN TABLES",
		"SHOW ENGINES", "SHOW STORAGE ENGINES", "SHOW CHARACTER SET", "SHOW CHARSET LIKE 'utf8mb4'", "SHOW COLLATION", "SHOW PLUGINS", "SHOW FULL PROCESSLIST", "SHOW PROCEDURE STATUS",
		"SHOW FUNCTION STATUS WHERE Db = 'nothing'", "SHOW TRIGGERS", "SHOW EVENTS", "SHOW PRIVILEGES", "SHOW PROFILES", "SHOW WARNINGS", "SHOW SLAVE HOSTS", "SHOW REPLICAS",
		"SHOW MASTER STATUS", "SHOW BINARY LOG STATUS",
		"SELECT NOW()", "SELECT CURRENT_TIMESTAMP AS t", "SELECT UTC_TIMESTAMP()", "SELECT UNIX_TIMESTAMP()", "SELECT @@version_comment LIMIT 1", "SELECT @@hostname, @@port, @@time_zone",
		"SELECT @@autocommit, @@wait_timeout, @@max_allowed_packet", "SELECT DATABASE(), USER(), CONNECTION_ID(), VERSION()", "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE 1 = 0",
		"SELECT TABLE_NAME, TABLE_ROWS n, t.CREATE_TIME `when`, NULL, 'x' AS y FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = 'nothing'",
		"SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = 'utf8mb4'",
	}
	for _, prepared := range []bool{false, true} {
		for _, query := range exact {
			names, types, err := columnFamilies(t, direct, query, prepared)
			if err != nil {
				continue // this server does not know it
			}
			gotNames, gotTypes, err := columnFamilies(t, admin, query, prepared)
			if err != nil || !slices.Equal(gotNames, names) || !slices.Equal(gotTypes, types) {
				t.Errorf("%s (prepared %v): %v\n got %v\n     %v\nwant %v\n     %v", query, prepared, err, gotNames, gotTypes, names, types)
			}
		}
		for _, table := range []string{
			"SCHEMATA", "TABLES", "COLUMNS", "VIEWS", "TRIGGERS", "EVENTS", "ROUTINES", "PARAMETERS", "PARTITIONS", "STATISTICS", "KEY_COLUMN_USAGE", "REFERENTIAL_CONSTRAINTS",
			"TABLE_CONSTRAINTS", "CHECK_CONSTRAINTS", "ENGINES", "PLUGINS", "CHARACTER_SETS", "COLLATIONS", "COLLATION_CHARACTER_SET_APPLICABILITY", "PROCESSLIST",
			"USER_PRIVILEGES", "SCHEMA_PRIVILEGES", "TABLE_PRIVILEGES", "COLUMN_PRIVILEGES",
		} {
			query := "SELECT * FROM information_schema." + table
			names, types, err := columnFamilies(t, direct, query+" LIMIT 0", prepared)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			gotNames, gotTypes, err := columnFamilies(t, admin, query, prepared)
			if err != nil {
				t.Errorf("%s: %v", query, err)
			}
			// A newer server may have more of them.
			at := 0
			for i := range gotNames {
				at += slices.Index(names[min(at, len(names)):], gotNames[i])
				if at < 0 || at >= len(names) || names[at] != gotNames[i] || types[at] != gotTypes[i] {
					t.Errorf("%s: column %s %s is not one of the server's, or not in this place: %v %v", query, gotNames[i], gotTypes[i], names, types)
					break
				}
				at++
			}
		}
	}
}

func TestMetadataAtTheAdminAddressIsTrue(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	client := e.Conn(t, e.Schemas[0], nil)
	id := value(t, client, "SELECT CONNECTION_ID()")
	admin := e.AdminConn(t, nil)
	eventually(t, "the client waits", func() bool { // before, what it said last is not told
		return value(t, admin, "SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = "+id) == "Sleep"
	})
	for _, prepared := range []bool{false, true} {
		c := e.AdminConn(t, func(c *mysql.Config) { as(watcher)(c); c.DBName = "gallery" })
		rows := func(query string, args ...any) (all []string) {
			t.Helper()
			if prepared != (len(args) > 0) && len(args) > 0 {
				return nil
			}
			var r *sql.Rows
			st, err := c.PrepareContext(t.Context(), query)
			if err != nil {
				t.Errorf("%s: %v", query, err)
				return nil
			}
			defer st.Close()
			if prepared {
				r, err = st.QueryContext(t.Context(), args...)
			} else {
				r, err = c.QueryContext(t.Context(), query, args...)
			}
			if err != nil {
				t.Errorf("%s: %v", query, err)
				return nil
			}
			defer r.Close()
			columns, err := r.Columns()
			if err != nil {
				t.Fatal(err)
			}
			values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range into {
				into[i] = &values[i]
			}
			for r.Next() {
				if err := r.Scan(into...); err != nil {
					t.Fatal(err)
				}
				var row []string
				for _, v := range values {
					text := v.String
					if !v.Valid {
						text = "NULL"
					}
					row = append(row, text)
				}
				all = append(all, strings.Join(row, "|"))
			}
			if err := r.Err(); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			return all
		}
		for query, want := range map[string][]string{
			"SHOW VARIABLES LIKE 'autocommit'": {"autocommit|ON"},
			"SHOW VARIABLES WHERE Variable_name = 'wait_timeout' OR Variable_name IN ('autocommit')":             {"autocommit|ON", "wait_timeout|28800"},
			"SHOW VARIABLES WHERE `Variable_name` LIKE 'character\\_set\\_c%' AND NOT (Value <> 'utf8mb4')":      {"character_set_client|utf8mb4", "character_set_connection|utf8mb4"},
			"SHOW GLOBAL VARIABLES LIKE 'nothing'":                                                               nil,
			"SELECT variable_value FROM performance_schema.session_variables WHERE variable_name = 'autocommit'": {"ON"},
			"SHOW CHARACTER SET WHERE Charset = 'UTF8MB4'":                                                       {"utf8mb4|UTF-8 Unicode|utf8mb4_general_ci|4"},
			"SELECT MAXLEN, cs.CHARACTER_SET_NAME name FROM information_schema.CHARACTER_SETS cs":                {"4|utf8mb4"},
			"SELECT ID FROM information_schema.COLLATIONS":                                                       {"45"},
			"SHOW GRANTS":    {"GRANT USAGE ON *.* TO `" + watcher + "`@`127.0.0.1`"},
			"SHOW DATABASES": nil,
			"SELECT 'TABLE' UNION SELECT 'table' UNION SELECT 'VIEW'":                {"TABLE", "VIEW"},
			"SELECT 7 AS n UNION ALL SELECT 7 FROM DUAL":                             {"7", "7"},
			"SELECT '' x FROM DUAL WHERE 1=0":                                        nil,
			"SHOW VARIABLES WHERE 1=0":                                               nil,
			"SHOW TABLES":                                                            nil,
			"SELECT COUNT(*), MAX(TABLE_ROWS) FROM information_schema.TABLES":        {"0|NULL"},
			"SELECT COUNT(*) n FROM information_schema.TABLES GROUP BY TABLE_SCHEMA": nil,
			"SELECT TABLE_NAME FROM information_schema.TABLES UNION ALL SELECT User FROM mysql.user ORDER BY 1": nil,
			"SHOW STATUS LIKE 'Ssl_%'": {"Ssl_cipher|", "Ssl_version|"},
			"SELECT ID, USER, DB, INFO FROM information_schema.PROCESSLIST WHERE ID = " + id:   {id + "|" + e.User + "|" + e.Schemas[0] + "|NULL"},
			fmt.Sprintf("SHOW PROCESSLIST WHERE `User` = '%s' AND Id = 5", e.User):             nil,
			"SELECT COUNT(*), COUNT(1) n FROM information_schema.PROCESSLIST WHERE ID = " + id: {"1|1"},
			"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = 5":                 {"0"},
			"SELECT VARIABLE_NAME v FROM performance_schema.session_variables WHERE VARIABLE_NAME LIKE 'collation%' ORDER BY 1 DESC": {
				"collation_server", "collation_database", "collation_connection",
			},
			"SELECT VARIABLE_VALUE, VARIABLE_NAME FROM performance_schema.session_variables x WHERE VARIABLE_NAME IN ('port', 'tx_isolation', 'transaction_isolation') " +
				"ORDER BY x.VARIABLE_VALUE DESC, variable_name LIMIT 2": {"REPEATABLE-READ|transaction_isolation", "REPEATABLE-READ|tx_isolation"},
			"SELECT VARIABLE_NAME FROM performance_schema.session_variables WHERE VARIABLE_NAME LIKE 'collation%' ORDER BY VARIABLE_NAME LIMIT 1, 1":       {"collation_database"},
			"SELECT VARIABLE_NAME FROM performance_schema.session_variables WHERE VARIABLE_NAME LIKE 'collation%' ORDER BY VARIABLE_NAME LIMIT 5 OFFSET 2": {"collation_server"},
			"SELECT VARIABLE_NAME FROM performance_schema.session_variables LIMIT 0":                                                                       nil,
			"SELECT VARIABLE_NAME FROM performance_schema.session_variables LIMIT 7, 18446744073709551615 ":                                                rows("SELECT VARIABLE_NAME FROM performance_schema.session_variables")[7:],
			"SELECT @@hostname IS NULL FROM mysql.nothing":                                                                                                 nil,
			"SELECT 1 FROM information_schema.TABLES t JOIN information_schema.COLUMNS c USING (TABLE_NAME) WHERE EXISTS (SELECT 1)":                       nil,
		} {
			if got := rows(query); !slices.Equal(got, want) {
				t.Errorf("%s (prepared %v): got %q, want %q", query, prepared, got, want)
			}
		}
		if got := rows("SHOW VARIABLES WHERE Variable_name IN (?, ?) AND Value = ?", "autocommit", "wait_timeout", 28800); prepared && !slices.Equal(got, []string{"wait_timeout|28800"}) {
			t.Errorf("SHOW VARIABLES with parameters: got %q", got)
		}
		if got := rows("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_ROWS > ?", "gallery", nil); len(got) > 0 {
			t.Errorf("tables: got %q, want none", got)
		}
		if got := rows("SELECT VARIABLE_NAME FROM performance_schema.session_variables WHERE VARIABLE_NAME LIKE ? ORDER BY VARIABLE_NAME LIMIT ?, ?", "collation%", 1, 7); prepared && !slices.Equal(got, []string{"collation_database", "collation_server"}) {
			t.Errorf("LIMIT with parameters: got %q", got)
		}
		// Of numbers the order is not that of their texts, and what is NULL is the least.
		ids := rows("SELECT ID FROM information_schema.PROCESSLIST ORDER BY ID DESC")
		if len(ids) < 3 || !slices.IsSortedFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a))
		}) {
			t.Errorf("ids: got %q, want three or more, the highest first", ids)
		}
		if got := rows("SELECT DB FROM information_schema.PROCESSLIST ORDER BY DB LIMIT 1"); !slices.Equal(got, []string{"NULL"}) {
			t.Errorf("the first schema: got %q, want NULL", got)
		}
		for query, want := range map[string]uint16{
			"SELECT @@nothing_of_this_name":                                   1193,
			"SELECT 1, @@global.nothing":                                      1193,
			"SELECT '' x FROM DUAL WHERE a":                                   1235,
			"SELECT 1 UNION SELECT 'a'":                                       1235,
			"SELECT * FROM photos":                                            1235,
			"SELECT * FROM mysql.user":                                        1235, // nobody knows its columns
			"SELECT TABLE_NAME FROM information_schema.TABLES, photos":        1235,
			"SELECT TABLE_NAME FROM information_schema.TABLES UNION SELECT 1": 1235,
			"SELECT TABLE_NAME FROM information_schema.TABLES UNION SELECT COUNT(*) FROM mysql.x":                                   1235,
			"SELECT COUNT(*) + 1 FROM information_schema.TABLES":                                                                    1235,
			"SELECT COUNT(DB) FROM information_schema.PROCESSLIST":                                                                  1235, // there are rows
			"SELECT COUNT(*), MAX(ID) FROM information_schema.PROCESSLIST":                                                          1235,
			"SELECT COUNT(*) FROM information_schema.PROCESSLIST GROUP BY USER":                                                     1235,
			"SELECT ID FROM information_schema.PROCESSLIST ORDER BY ID + 1":                                                         1235,
			"SELECT ID FROM information_schema.PROCESSLIST ORDER BY 2":                                                              1235,
			"SELECT ID FROM information_schema.PROCESSLIST ORDER BY nothing":                                                        1235,
			"SELECT ID FROM information_schema.PROCESSLIST p ORDER BY t.ID":                                                         1235,
			"SELECT ID FROM information_schema.PROCESSLIST LIMIT -1":                                                                1235,
			"SELECT ID + 1 FROM information_schema.PROCESSLIST":                                                                     1235,
			"SHOW PROCESSLIST LIKE 'x'":                                                                                             1235,
			"SHOW FULL PROCESSLIST LIKE '%'":                                                                                        1235,
			"SELECT TABLE_NAME FROM information_schema.TABLES UNION SELECT ID FROM information_schema.PROCESSLIST":                  1235, // there are rows
			"SELECT ID FROM information_schema.PROCESSLIST WHERE 1=0 UNION SELECT ID FROM information_schema.PROCESSLIST":           1235,
			"SELECT TABLE_NAME FROM information_schema.TABLES t RIGHT JOIN information_schema.PROCESSLIST p ON t.TABLE_NAME = p.ID": 1235,
			"SELECT * FROM information_schema.TABLES UNION SELECT * FROM information_schema.TABLES":                                 1235,
			"SELECT " + strings.Repeat("*,", 300) + "* FROM information_schema.COLUMNS":                                             1235, // far more than tools ask for
			"SHOW VARIABLES WHERE Variable_name REGEXP 'a'":                                                                         1235,
			"SHOW VARIABLES WHERE nothing = 'a'":                                                                                    1235,
			"SHOW COLUMNS FROM photos":                                                                                              1235,
			"SHOW CREATE TABLE photos":                                                                                              1235,
			"SHOW GRANTS FOR root@localhost":                                                                                        1235,
			"DESCRIBE photos":                                                                                                       1235,
			"SELECT TABLE_NAME INTO OUTFILE '/tmp/x' FROM information_schema.TABLES":                                                1235,
			"SELECT TABLE_NAME FROM information_schema.TABLES INTO @x":                                                              1235,
		} {
			words := []string(nil)
			if want == 1235 {
				words = []string{"admin address", e.Addr()}
			}
			if !prepared {
				wantError(t, c, want, query, words...)
				continue
			}
			st, err := c.PrepareContext(t.Context(), query)
			if err == nil {
				st.Close()
			}
			checkError(t, "prepared "+query, err, want, words...)
		}
	}
	none := e.AdminConn(t, nil)
	wantError(t, none, 1046, "SHOW TABLES", "No database selected")
	exec(t, none, "SET time_zone = '+05:30'")
	var now, utc time.Time
	if err := e.AdminConn(t, func(c *mysql.Config) { c.ParseTime = true }).QueryRowContext(t.Context(), "SELECT NOW(), UTC_TIMESTAMP()").Scan(&now, &utc); err != nil || time.Since(utc).Abs() > time.Hour || !now.Equal(utc) && now.Sub(utc) > time.Second {
		t.Errorf("now: got %v, %v, %v", now, utc, err)
	}
	ahead := value(t, none, "SELECT NOW()")
	if at, err := time.Parse(time.DateTime, ahead); err != nil || (time.Until(at)-5*time.Hour-30*time.Minute).Abs() > time.Hour {
		t.Errorf("now at +05:30: got %s, %v", ahead, err)
	}
}

func TestCommandsAtTheAdminAddressThatAskForMetadata(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	e.Wire(t, e.Addr(), asWire(stranger))
	w := e.Wire(t, e.AdminAddr(), asWire(watcher))
	if got := string(w.do(protocol.ComStatistics, "")); !strings.Contains(got, "Uptime: ") || !strings.Contains(got, "Threads: 2") {
		t.Errorf("statistics: got %q", got)
	}
	eventually(t, "both are among the processes", func() bool { // whoever has just logged in is unknown for a moment
		got := string(w.do(protocol.ComProcessInfo, ""))
		return strings.Contains(got, stranger) && strings.Contains(got, watcher)
	})
	w.ping("these")
}
