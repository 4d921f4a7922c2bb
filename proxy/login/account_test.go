package login

import "testing"

// A session that outlives a reload logs in to servers with the passwords of that.
func TestTheAccountOfAReload(t *testing.T) {
	type passwords struct{ first, other string }
	for what, test := range map[string]struct{ login, now, want passwords }{
		"no change":                              {passwords{"one", ""}, passwords{"one", ""}, passwords{"one", ""}},
		"no change, a login with the new":        {passwords{"two", "one"}, passwords{"two", "one"}, passwords{"two", "one"}},
		"no change, a login with the old":        {passwords{"one", "two"}, passwords{"two", "one"}, passwords{"one", "two"}},
		"a change begins":                        {passwords{"one", ""}, passwords{"two", "one"}, passwords{"one", "two"}},
		"a change ends":                          {passwords{"two", "one"}, passwords{"two", ""}, passwords{"two", ""}},
		"it ends for who logged in with the old": {passwords{"one", "two"}, passwords{"two", ""}, passwords{"two", "one"}},
		"one without an old password":            {passwords{"one", ""}, passwords{"two", ""}, passwords{"two", "one"}},
		"two changes":                            {passwords{"one", ""}, passwords{"three", "two"}, passwords{"three", "two"}},
		"one that is taken back":                 {passwords{"one", ""}, passwords{"one", "two"}, passwords{"one", "two"}},
		"a first password":                       {passwords{"", ""}, passwords{"one", ""}, passwords{"", "one"}},
		"a password no more":                     {passwords{"one", ""}, passwords{"", ""}, passwords{"", "one"}},
	} {
		of := func(p passwords, admin bool) *Account {
			return NewAccount(&User{Name: "app", Password: p.first, OldPassword: p.other, Admin: admin})
		}
		users := map[string]*Account{"app": of(test.now, true)}
		account := of(test.login, false)
		now := account.Present(users)
		if got := (passwords{now.Password, now.OldPassword}); got != test.want {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
		if now.Admin || now.Name != "app" {
			t.Errorf("%s: the account has other rights, too", what)
		}
		if account.relayed = true; account.Present(users) != account {
			t.Errorf("%s: an account that a server has checked has changed", what)
		}
		if account.relayed = false; account.Present(nil) != account {
			t.Errorf("%s: the account of a removed user has changed", what)
		}
	}
}
