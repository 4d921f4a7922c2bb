// Package texts has SQL statements for the tests of everything that reads SQL.
//
// Start at [Corpus].
package texts

import "seqproxy/statement/lex"

// ModeOf makes a Mode from a fuzz target's byte.
func ModeOf(b byte) lex.Mode {
	return lex.Mode{
		SQLMode: lex.SQLMode{NoBackslashEscapes: b&1 != 0, ANSIQuotes: b&2 != 0, Brackets: b&32 != 0},
		Charset: lex.Charset(b >> 2 % 8),
	}
}

// Corpus seeds the fuzz targets, and tests that hold for every text.
var Corpus = []string{
	"",
	"select 1",
	"000000e00..0",
	"select [it's], nextval('a') -- '",
	"set ;seleCt neXtvAl(",
	"/*!70000'*/'A",
	"with@@pseudo_threAd_id",
	"SELECT id, name FROM photos WHERE id = 12345",
	"select nextval('a'), nextval(`b`) as x, last_insert_id() from dual;",
	"select 1 + nextval('a'), (select nextval('b')) union select nextval('c')",
	"select * from (select connection_id()) t where x in (select connection_id() from u)",
	"with x as (select connection_id()) select @@identity, @@session.pseudo_thread_id from x",
	"INSERT INTO photos (id, album, title) VALUES (NEXTVAL('photos'), ?, 'it''s'), (nextval(a.b), last_insert_id(), \"x\\\"y\")",
	"insert into t set a = nextval('a'), b = nextval(concat('a', nextval('b')))",
	"select nextval(?), nextval(@x), nextval()",
	"select case when nextval('a') then 1 end e, now() + interval nextval('a') day -- c\n, `x``y`",
	"select /*! nextval('a') */, /*!50000 1 */ /*M!100000 2 */ /*!80000 '*/' */ 3",
	"select '\xbf\\' , nextval('a') , '\x81\\'",
	"select x'41', N'a', b'1', _utf8'x', 0x1F, 1.5e-3, .5, t.1a",
	"SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
	"set global a = 1, @@session.b = (select nextval('a')), names utf8 collate x, password = 'x'",
	"set transaction isolation level read committed, read only",
	"create sequence if not exists `a` start with 5 cache = 10 increment by 2",
	"create or replace sequence s as int unsigned no minvalue maxvalue 9 nocycle comment 'it''s' owned by d.t.c json_safe",
	"alter sequence if exists s restart with 5 force, owned by none",
	"drop sequence if exists a, 'b', c.d",
	"select next value for s, previous value for `d`.s x, lastval(s) + setval('s', -5, false, 0), setval(s, ?)",
	"select next value from d.s; select next 5 values from s; select next ? values for s",
	"select a.nextval, b . currval, d.c.nextval from t c where x = (select `a`.nextval)",
	"insert into t (a) values (nextval(?), nextval(?, ?)), (?, nextval('a', ?)), (nextval(`b`, 1000000), a.nextval)",
	"select a/*!.*/nextval, next/*! value */for s, next value for update",
	"show sequences like 'a\\_%'; flush sequences a, b; check sequence a, b; repair sequence a; show create sequence `a`",
	"create definer = `a`@`b` trigger t before insert on x for each row begin set new.id = nextval('a'); end",
	"alter algorithm = merge definer = a view v as select 1",
	"alter database character set utf8",
	"kill query 5; use `x`; begin; commit and chain; rollback to a",
	"prepare s from 'select nextval(''a'')'",
	"begin not atomic select nextval('a'); end",
	"load data low_priority local infile 'x' into table t",
	"insert into nextval (a) values ((((nextval('a')))))",
	"select nextval/**/('a' -- x\n)#",
	"((((select 1))))))",
	"select nextval('a'), 1e5from t union select .5from \\Ninto@c",
	"select union.x, 1.e5e, 1.else, t.1e5from, @@ identity, @@`identity`, @a\xbf^.5from",
	"/*! select /*M! nextval('a') */ -- \x00",
	"create table t (a int default nextval(s)) as select nextval('a'), @x",
	"load data infile 'x' into table t (@a) set v = @a",
	"select 'unterminated",
	"select ` /* '",
}
