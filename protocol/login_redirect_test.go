package protocol

import (
	"bytes"
	"strings"
	"testing"
)

func TestARedirectionIsTakenOutOfALoginsOK(t *testing.T) {
	plain := AppendOK(nil, 0, OK{Status: Autocommit})[HeaderSize:]
	variable := func(name, value string) string {
		return "\x00" + string(AppendLenEncBytes(nil, AppendLenEncBytes(AppendLenEncBytes(nil, name), value)))
	}
	login := func(trackers ...string) []byte {
		return AppendLenEncBytes(append(bytes.Clone(plain), 0), strings.Join(trackers, ""))
	}
	const url = "mariadb://192.0.2.1:3306/"
	schema, charset := "\x01\x05\x04shop", variable("character_set_client", "utf8mb4")
	redirected := login(charset, variable("redirect_url", url), schema)
	for name, c := range map[string]struct{ ok, want []byte }{
		"no trackers":            {plain, plain},
		"others":                 {login(charset, schema), login(charset, schema)},
		"among others":           {redirected, login(charset, variable("redirect_url", ""), schema)},
		"a long one":             {login(variable("redirect_url", strings.Repeat("u", 500)), charset), login(variable("redirect_url", ""), charset)},
		"none is set":            {login(variable("redirect_url", "")), login(variable("redirect_url", ""))},
		"another variable's":     {login(variable("init_connect", "redirect_url")), login(variable("init_connect", "redirect_url"))},
		"a schema of that name":  {login("\x01\x0d\x0credirect_url"), login("\x01\x0d\x0credirect_url")},
		"a text that is like it": {append(bytes.Clone(plain), "\x0credirect_url"...), append(bytes.Clone(plain), "\x0credirect_url"...)},
	} {
		if got := withoutRedirect(c.ok); !bytes.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for n := range redirected { // no panic for any prefix
		_ = withoutRedirect(redirected[:n])
	}
}
