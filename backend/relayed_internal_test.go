package backend

import "testing"

func TestPluginsThatMayLookAtTheProxyAreFoundInAnAccountsDefinition(t *testing.T) {
	for create, want := range map[string]string{
		"CREATE USER `app`@`%`":                                "", // no password
		"CREATE USER `app`@`%` IDENTIFIED BY PASSWORD '*81F5'": "",
		"CREATE USER `app`@`%` IDENTIFIED BY PASSWORD '*81F5' REQUIRE SSL WITH MAX_USER_CONNECTIONS 5":              "",
		"CREATE USER `app`@`%` IDENTIFIED VIA ed25519 USING 'x' OR mysql_native_password USING 'y'":                 "",
		"CREATE USER `app`@`%` IDENTIFIED VIA unix_socket":                                                          "unix_socket",
		"CREATE USER `root`@`localhost` IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket":        "unix_socket",
		"CREATE USER `a`@`%` IDENTIFIED VIA ed25519 USING 'x' OR mysql_native_password USING 'y' OR gssapi":         "gssapi",
		"CREATE USER `app`@`%` IDENTIFIED VIA pam USING 'mariadb'":                                                  "pam",
		"CREATE USER `app`@`%` identified via\n\tUNIX_SOCKET":                                                       "unix_socket",
		"CREATE USER `app`@`%` IDENTIFIED VIA mysql_native_password USING 'it''s \\' fine'":                         "",
		"CREATE USER `app`@`%` IDENTIFIED VIA mysql_native_password USING 'a''' OR unix_socket":                     "unix_socket",
		"CREATE USER `x OR unix_socket`@`%` IDENTIFIED BY PASSWORD '*81F5'":                                         "",
		"CREATE USER `x`` VIA`@`%` IDENTIFIED BY PASSWORD '*81F5'":                                                  "",
		"CREATE USER \"app\"@\"%\" IDENTIFIED VIA \"unix_socket\"":                                                  "that cannot be read",
		"CREATE USER `app`@`%` IDENTIFIED VIA `unix_socket` USING 'x'":                                              "using",
		"CREATE USER `app`@`%` IDENTIFIED VIA mysql_native_password USING 'an end is missing OR unix_socket":        "that cannot be read",
		"CREATE USER `app`@`%` IDENTIFIED VIA mysql_native_password USING 'an end is missing OR unix_socket\\' ...": "that cannot be read",
		"":                    "that cannot be read",
		"DROP USER `app`@`%`": "that cannot be read",
	} {
		if got := untrusted(create); got != want {
			t.Errorf("%s: got %q, want %q", create, got, want)
		}
	}
}
