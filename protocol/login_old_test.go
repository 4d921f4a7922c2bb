package protocol

import (
	"errors"
	"testing"
)

func TestALoginOfBeforeMySQL41IsReadIfItHasNoPassword(t *testing.T) {
	for _, c := range []struct {
		payload, user string
		err           error
	}{
		{"\x00\x80\x00\x00\x01chk\x00\x00", "chk", nil}, // HAProxy's
		{"\x00\x80\x00\x00\x01chk\x00", "chk", nil},
		{"\x00\x00\xff\xff\xff\x00", "", nil},
		{"\x00\x80\x00\x00\x01chk", "", ErrMalformed},
		{"\x00\x80\x00\x00\x01", "", ErrMalformed},
		{"", "", ErrMalformed},
		{"\x00\x80\x00\x00\x01chk\x00password", "", errOldClient},
		{"\x08\x80\x00\x00\x01chk\x00\x00schema\x00", "", errOldClient},
	} {
		r, err := parseOldResponse([]byte(c.payload))
		switch {
		case !errors.Is(err, c.err):
			t.Errorf("%q: got error %v, want %v", c.payload, err, c.err)
		case err == nil && (r.User != c.user || r.Capabilities != 0 || len(r.AuthResponse) != 0):
			t.Errorf("%q: got %+v, want the user %q and no flags", c.payload, r, c.user)
		}
	}
}

func TestAnOldClientIsAnsweredInItsForm(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.Old = true })
	for user, code := range map[string]uint16{"app": 1045, "nobody": 1045} {
		c := s.raw(t)
		c.send([]byte("\x00\x80\x00\x00\x01" + user + "\x00\x00"))
		p := c.receive()
		var refused *ServerError
		if err := ParseServerError(p); !errors.As(err, &refused) || refused.Code != code || refused.State != "" {
			t.Errorf("%s: got %q, want error %d without a state", user, p, code)
		}
	}
	never := startLoginServer(t, "tcp", nil)
	c := never.raw(t)
	c.send([]byte("\x00\x80\x00\x00\x01open\x00\x00"))
	c.wantERR(1251, "does not support authentication protocol")
}
