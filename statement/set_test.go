package statement

import (
	"fmt"
	"strings"
	"testing"
)

var targetNames = [...]string{
	"unknown", "user", "session", "global", "names", "charset", "transaction", "password", "role", "statement",
}

func describeAssignments(sql string, st *Statement) string {
	var parts []string
	for _, as := range st.Assignments {
		s := fmt.Sprintf("%s %s=[%s]", targetNames[as.Target], as.Name, sql[as.Start:as.End])
		if as.Literal {
			s += "!"
		}
		if as.Scope != ScopeNext {
			s += fmt.Sprint(" scope ", as.Scope)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

func TestSetIsReadElementByElement(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"set a = 1", "session a=[1]!"},
		{"SET Sql_Mode = 'ANSI'", "session sql_mode=['ANSI']!"},
		{"set `sql_mode` := \"\"", "session sql_mode=[\"\"]!"},
		{"set autocommit=0;", "session autocommit=[0]!"},
		{"set session a = on, local b = off", "session a=[on]!; session b=[off]!"},
		{"set @@a = default, @@session.b = -1.5e3, @@local.c = +2", "session a=[default]!; session b=[-1.5e3]!; session c=[+2]!"},
		{"set global a = 1, b = 2, session c = 3, d = 4", "global a=[1]!; global b=[2]!; session c=[3]!; session d=[4]!"},
		{"set @@global.a = 1, b = 2", "global a=[1]!; session b=[2]!"},
		{"set persist a = 1, @@persist_only.b = 2", "global a=[1]!; global b=[2]!"},
		{"set @@`session`.a = 1", "session session.a=[1]!"},
		{"set hot.key_buffer_size = 1, @@validate_password.policy = low", "session hot.key_buffer_size=[1]!; session validate_password.policy=[low]!"},
		{"set @a = 1, @'B c' = 'x', @`d``e` := null, @f.g$h = true", "user a=[1]!; user b c=['x']!; user d`e=[null]!; user f.g$h=[true]!"},
		{"set @a = x'41', @b = 0x41, @c = b'01', @d = 'a' 'b', @e = N'x'", "user a=[x'41']!; user b=[0x41]!; user c=[b'01']!; user d=['a' 'b']!; user e=[N'x']!"},
		{"set @a = on", "user a=[on]"},
		{"set @a = 1 + 1", "user a=[1 + 1]"},
		{"set @a = (1)", "user a=[(1)]"},
		{"set @a = - - 1", "user a=[- - 1]"},
		{"set @a = concat('a', 'b', (select 1, 2)), @b = 2", "user a=[concat('a', 'b', (select 1, 2))]; user b=[2]!"},
		{"set @a = @b, @c = @@sql_mode", "user a=[@b]; user c=[@@sql_mode]"},
		{"set @a = 'x' collate utf8mb4_bin", "user a=['x' collate utf8mb4_bin]!"},
		{"set @a = ?", "user a=[?]"},
		{"set @a = _utf8'x'", "user a=[_utf8'x']"},
		{"set @a = /* x */ 1 /* y */ , b = 2", "user a=[1]!; session b=[2]!"},
		{"set sql_mode = concat(@@sql_mode, ',x')", "session sql_mode=[concat(@@sql_mode, ',x')]"},
		{"set sql_mode = @old", "session sql_mode=[@old]"},
		{"SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'", "user old_sql_mode=[@@SQL_MODE]; session sql_mode=['NO_AUTO_VALUE_ON_ZERO']!"},
		{"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;", "user old_sql_mode=[@@SQL_MODE]; session sql_mode=['NO_AUTO_VALUE_ON_ZERO']!"},
		{"/*!40101 SET NAMES utf8 */;", "names =[utf8]!"},
		{"set names 'utf8mb4' collate 'utf8mb4_bin'", "names =['utf8mb4' collate 'utf8mb4_bin']!"},
		{"set names utf8mb4 collate utf8mb4_bin, @a = 1", "names =[utf8mb4 collate utf8mb4_bin]!; user a=[1]!"},
		{"set names default", "names =[default]!"},
		{"set @a = 1, names gbk, character set big5, charset 'x'", "user a=[1]!; names =[gbk]!; charset =[big5]!; charset =['x']!"},
		{"set names = 1", "session names=[1]!"},
		{"set transaction isolation level read committed, read only", "transaction =[isolation level read committed, read only]"},
		{"set session transaction read write", "transaction =[read write] scope 1"},
		{"set local transaction read write", "transaction =[read write] scope 1"},
		{"set global transaction isolation level serializable", "transaction =[isolation level serializable] scope 2"},
		{"set transaction_isolation = 'x'", "session transaction_isolation=['x']!"},
		{"set password = 'x'", "password =[= 'x']"},
		{"set password for 'a'@'b' = password('x'), @a = 1", "password =[for 'a'@'b' = password('x')]; user a=[1]!"},
		{"set role none", "role =[none]"},
		{"set default role a, b to c", "role =[role a, b to c]"},
		{"set statement lock_wait_timeout = 5 for select 1, 2", "statement =[lock_wait_timeout = 5 for select 1, 2]"},
		{"set statement max_statement_time = 5 for select 1, 2", ""},
		{"set statement max_statement_time = 5 for set a = 1", "statement =[max_statement_time = 5 for set a = 1]"},
		{"set resource group x", "unknown =[group x]"},
		{"set", ""},
		{"set a", "unknown =[]"},
		{"set a 5, b = 6", "unknown =[5, b = 6]"},
		{"set a = 1,", "session a=[1]!"},
		{"set = 1", "unknown =[1]"},
		{"set session names utf8", "unknown names=[]"},
		{"set a = 1; set b = 2", "session a=[1]!; session b=[2]!"},
	} {
		st := analyze(c.sql)
		if got := describeAssignments(c.sql, st); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sql, got, c.want)
		}
		unknown := strings.Contains(c.want, "unknown") || strings.Contains(c.want, "statement")
		if got := st.Words&Opaque != 0; got != unknown {
			t.Errorf("%q: got opaque %v, want %v", c.sql, got, unknown)
		}
	}
}

func TestSchemaIsDecoded(t *testing.T) {
	for sql, want := range map[string]string{
		"use album0":                                "album0",
		"use `al``bum`;":                            "al`bum",
		"USE /* x */ a -- y":                        "a",
		"create database a":                         "a",
		"create database if not exists `b`":         "b",
		"create or replace schema c charset utf8":   "c",
		"create database `if`":                      "if",
		"drop database if exists d":                 "d",
		"drop schema e":                             "e",
		"alter database f character set utf8":       "f",
		"alter schema `g` collate x":                "g",
		"alter database character set utf8":         "",
		"alter database collate = utf8mb4_bin":      "",
		"alter database default character set utf8": "",
		"alter database h":                          "h",
		"select 1":                                  "",
	} {
		if got := string(analyze(sql).Schema); got != want {
			t.Errorf("%q: got schema %q, want %q", sql, got, want)
		}
	}
}

func TestKillNamesAConnection(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want KillTarget
	}{
		{"kill 5", KillTarget{Operand: KillNumber, ID: 5, Start: 5, End: 6}},
		{"kill connection 2147483649;", KillTarget{Operand: KillNumber, ID: 2147483649, Start: 16, End: 26}},
		{"KILL QUERY 7 ; # done", KillTarget{}},
		{"KILL QUERY -1635778512", KillTarget{Operand: KillNumber, Query: true, ID: 2659188784, Start: 11, End: 22}},
		{"kill -2147483648", KillTarget{Operand: KillNumber, ID: 1 << 31, Start: 5, End: 16}},
		{"kill -2147483649", KillTarget{}},
		{"kill -0", KillTarget{}},
		{"kill -1 + 1", KillTarget{}},
		{"kill - ", KillTarget{}},
		{"KILL QUERY 7 /* so */ ; ;\n", KillTarget{Operand: KillNumber, Query: true, ID: 7, Start: 11, End: 12}},
		{"kill hard query 7", KillTarget{Operand: KillNumber, Query: true, Hard: true, ID: 7, Start: 16, End: 17}},
		{"kill soft 18446744073709551615", KillTarget{Operand: KillNumber, Soft: true, ID: 1<<64 - 1, Start: 10, End: 30}},
		{"kill '2147483649'", KillTarget{Operand: KillNumber, ID: 2147483649, Start: 5, End: 17}},
		{`kill query "7"`, KillTarget{Operand: KillNumber, Query: true, ID: 7, Start: 11, End: 14}},
		{"kill ?", KillTarget{Operand: KillParam, Start: 5, End: 6}},
		{"kill @x", KillTarget{Operand: KillVariable, Start: 5, End: 7}},
		{"kill query @`a b`", KillTarget{Operand: KillVariable, Query: true, Start: 11, End: 17}},
		{"kill connection connection_id ( )", KillTarget{Operand: KillSelf, Start: 16, End: 33}},
		{"kill connection_id", KillTarget{}},
		{"kill connection_id() + 1", KillTarget{}},
		{"kill @x + 1", KillTarget{}},
		{"kill 'x'", KillTarget{}},
		{"kill ''", KillTarget{}},
		{"kill x'35'", KillTarget{}},
		{"kill n'5'", KillTarget{}},
		{"kill 5 '6'", KillTarget{}},
		{"kill /*!99999 query */ 5", KillTarget{}},
		{"kill", KillTarget{}},
		{"kill '5", KillTarget{}},
		{"kill 18446744073709551616", KillTarget{}},
		{"kill 0x5", KillTarget{}},
		{"kill 5 + 1", KillTarget{}},
		{"kill query id 5", KillTarget{}},
		{"kill user a", KillTarget{}},
	} {
		if got := analyze(c.sql).Kill; got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.sql, got, c.want)
		}
	}
}
