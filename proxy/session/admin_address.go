package session

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/login"
	"seqproxy/statement"
)

// noServer is the error for what needs a server where there is none.
func (a *attachment) noServer() error {
	if !a.login.AtAdmin {
		return errKeysOnly
	}
	return protocol.NotSupported("this is the admin address, where only SEQPROXY ..., SHOW SEQPROXY ..., EXPLAIN FORMAT=ROUTE and statements about sequences are answered "+
		"(SHOW SEQPROXY HELP lists them), and what drivers ask when they connect: for all else, as for data and to look around with a tool, connect to %s", a.shared.Address)
}

// version is what the session says that the server's is where there is none.
func (a *attachment) version() string {
	if a.login.AtAdmin {
		if hello, ok := a.set.Routes.Greeting(); ok {
			return hello.TrueVersion()
		}
	}
	return login.NoServerVersion
}

// atAdminAddress handles a text at the admin address.
func (t *texts) atAdminAddress(sql []byte) error {
	if asksForNumbers(&t.planning.stmt) {
		return t.at.noServer()
	}
	return t.special(sql)
}

// asksForNumbers says whether a text is one that sequences give numbers to.
func asksForNumbers(st *statement.Statement) bool {
	if st.Refusal != "" {
		return true
	}
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return true
		}
	}
	return false
}

// notHere is the error for a statement to the proxy where clients connect, if it is
// answered at the admin address alone and the user may give it there.
func (a *attachment) notHere(st *statement.Statement) error {
	if st.Kind != statement.Seqproxy && st.Kind != statement.ExplainRoute {
		return nil
	}
	if !a.set.AdminAddressOnly || a.login.AtAdmin || !a.login.Account.MaySee() {
		return nil
	}
	where := "the admin address"
	if l := a.shared.AdminAddress; l != nil {
		where += " " + l.String()
	}
	return protocol.Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: SEQPROXY, SHOW SEQPROXY and EXPLAIN FORMAT=ROUTE are answered at %s (admin.data_port is false)", where)
}
