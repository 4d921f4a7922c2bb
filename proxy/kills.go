package proxy

import (
	"fmt"
	"strconv"

	"seqproxy/proxy/kill"
	"seqproxy/statement"
)

// killInside is a KILL of another session that stands among several statements. The server
// gets a statement without effect in its place; the KILL is carried out when the statements
// in front of it have succeeded.
type killInside struct {
	results int // that have come before its turn, its own included
	target  *session
	wish    kill.Wish
}

// killsAmong handles a text of several statements with KILLs of numbers among them.
func (s *session) killsAmong(sql []byte) error {
	text, err := s.replaceKills(sql)
	if err != nil {
		return err
	}
	defer func() { s.kills, s.replaced = nil, false }()
	if s.replaced = text != nil; s.replaced {
		sql = text
		s.srv.texts.Analyze(&s.stmt, sql, s.state.Mode)
	}
	if len(s.stmt.Tables) > 0 && s.boundTables() {
		err = s.filled(sql)
	} else {
		err = s.special(sql)
	}
	if err == nil && s.cur != nil {
		s.killAfter(s.cur.Answer.Results) // what relayAnswers has not had to do with
	}
	return err
}

// replaceKills returns the text with those KILLs replaced that name an id which this proxy
// gave, nil if none does, and takes note of those that are to be carried out. A KILL of an
// id that is nobody's stays: the server says that it knows no such thread.
func (s *session) replaceKills(sql []byte) (text []byte, err error) {
	s.kills = nil
	from := 0
	for i := range s.stmt.Kills {
		k := &s.stmt.Kills[i]
		if !isOwnID(k.ID) || (k.Hard || k.Soft) && !s.likeMariaDB() {
			continue
		}
		instead, err := s.insteadOfKill(k)
		if err != nil {
			return nil, err
		}
		if instead != "" {
			text = append(append(text, sql[from:k.Begin]...), instead...)
			from = k.End
		}
	}
	if text == nil {
		return nil, nil
	}
	return append(text, sql[from:]...), nil
}

// insteadOfKill is what the server gets in the place of a KILL; "" leaves that.
func (s *session) insteadOfKill(k *statement.KillTarget) (string, error) {
	id, wish := uint32(k.ID), kill.WishOf(k)
	if id == s.id {
		c, err := s.attach()
		if err != nil {
			return "", err
		}
		return wish.Text(c.ID), nil
	}
	target := s.srv.byConnectionID(id)
	if target == nil {
		return "", nil
	}
	places, right := target.killPlaces(s)
	if right == killDenied {
		denied := forClient(notOwner(id))
		return fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = '%s'", denied.State, denied.Code, denied.Message), nil
	}
	if k.Results < 0 {
		return "", notSupported("KILL %s behind CALL, EXECUTE or something not understood in the same text: send it alone", strconv.FormatUint(k.ID, 10))
	}
	for _, p := range places {
		if p.viaOwn { // while that connection is busy
			return "", notSupported("KILL %s among several statements, of a session whose password only the server knows: send it alone", strconv.FormatUint(k.ID, 10))
		}
	}
	s.kills = append(s.kills, killInside{k.Results + 1, target, wish})
	return "DO 0", nil
}

// killAfter carries out the KILLs whose turn has come, after so many results of the text.
// A server that cannot be told to end a statement is most likely gone with the statement.
func (s *session) killAfter(results int) {
	for len(s.kills) > 0 && s.kills[0].results <= results {
		k := s.kills[0]
		s.kills = s.kills[1:]
		_ = s.killOther(k.target, k.wish)
	}
}
