package statement

import (
	"testing"

	"seqproxy/statement/lex"
)

// With a wrong true a connection seems to have two ids. With a wrong false a client gets the
// server's id, although the greeting had another.
func TestTheClientsIDIsMeantWhereNothingKnowsTheServers(t *testing.T) {
	for _, sql := range []string{
		"select connection_id()", "SELECT CONNECTION_ID ( ) AS id FROM DUAL;", "(select connection_id())", "select `connection_id`()",
		"select @@pseudo_thread_id", "select connection_id() = @@session.pseudo_thread_id",
		"select version(), database(), schema(), user(), current_user(), current_user, connection_id(), last_insert_id(), @@version, @@autocommit, now()",
		"select connection_id() + 0, concat('id ', connection_id()), cast(connection_id() as char(20)), if(connection_id() in (1, 2), 'a', 'b') x limit 1",
		"select nextval('s'), next value for s, connection_id()", "select /*! connection_id() */", "select connection_id() = ?",
		"select case when (connection_id() > 5) then (1) else 2 end", "select 1; select connection_id(); select 2;",
		"select connection_id() 'get_lock(', 1 `is_used_lock`",
	} {
		var st Statement
		if st.Analyze([]byte(sql), lex.Mode{}); !st.ClientID {
			t.Errorf("%s: got the server's id", sql)
		}
	}
	for _, sql := range []string{
		"select is_used_lock('l') = connection_id()", "select connection_id(), is_used_lock ('l')", "select `is_used_lock`('l') = connection_id()",
		"select connection_id() from t", "select (select connection_id())", "select * from (select connection_id()) d", "select connection_id() union select 1",
		"select connection_id() union table t", "with c as (select connection_id()) select 1", "select connection_id() in (table t)",
		"select id = connection_id() from information_schema.processlist", "select ps_thread_id(connection_id())", "select sys.ps_thread_id(connection_id())",
		"select f(connection_id())", "select db.version(), connection_id()", "select connection_id(), version ()", "select `version`(), connection_id()",
		"select db . connection_id(), connection_id()", "select ps_current_thread_id(), @@pseudo_thread_id",
		"select @x = connection_id()", "select @x := connection_id()", "select connection_id() into @x", "set @x = connection_id()", "do connection_id()",
		"insert into t values (connection_id())", "update t set a = connection_id()", "delete from t where a = connection_id()", "replace into t select connection_id()",
		"call p(connection_id())", "values row(connection_id())", "kill connection_id() + 0", "select get_lock('l', 1), connection_id()",
		"select last_insert_id(connection_id())", "select connection_id(); set @x = connection_id()", "select connection_id(); select is_used_lock('l')",
		"select json_table(connection_id())", "select 1", "selec connection_id()", "select connection_id(), 'x",
		"explain select connection_id()", "select connection_id(); create procedure p() select 1",
	} {
		var st Statement
		if st.Analyze([]byte(sql), lex.Mode{}); st.ClientID {
			t.Errorf("%s: got the client's id", sql)
		}
	}
}
