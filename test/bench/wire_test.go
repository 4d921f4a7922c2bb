package main

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestCommandHasLengthNumberAndCode(t *testing.T) {
	got := hex.EncodeToString(command(mysql.COM_QUERY, "SELECT 1"))
	if want := "0900000003" + hex.EncodeToString([]byte("SELECT 1")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := command(mysql.COM_QUERY, strings.Repeat("x", 0x123))
	if got, want := hex.EncodeToString(long[:5]), "2401000003"; got != want {
		t.Errorf("header of a longer command: got %s, want %s", got, want)
	}
}

func TestExecuteCarriesStatementIDAndParameter(t *testing.T) {
	p := executeInt64(0x01020304)
	setExecuteInt64(p, 258)
	want := "16000000" + "17" + "04030201" + "00" + "01000000" + "00" + "01" + "0800" + "0201000000000000"
	if got := hex.EncodeToString(p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// mariaGreeting is what MariaDB 10.11 sends, with the salt "ABCDEFGHabcdefghijkl".
func mariaGreeting() []byte {
	p := append([]byte{10}, "5.5.5-10.11.6-MariaDB\x00"...)
	p = append(p, 9, 0, 0, 0)
	p = append(p, "ABCDEFGH\x00"...)
	p = append(p, 0xfe, 0xf7, 0x2d, 0x02, 0x00, 0xff, 0x81, 21)
	p = append(p, make([]byte, 6)...)
	p = append(p, 0x1d, 0, 0, 0)
	p = append(p, "abcdefghijkl\x00"...)
	return append(p, "mysql_native_password\x00"...)
}

func TestGreetingOfMariaDBIsRead(t *testing.T) {
	g, err := parseGreeting(mariaGreeting())
	if err != nil {
		t.Fatal(err)
	}
	if g.version != "5.5.5-10.11.6-MariaDB" || string(g.salt) != "ABCDEFGHabcdefghijkl" || g.plugin != "mysql_native_password" || g.capabilities != 0x81fff7fe {
		t.Errorf("got %+v", g)
	}
}

func TestGreetingCutAnywhereIsAnErrorAndNoPanic(t *testing.T) {
	whole := mariaGreeting()
	salt := len(whole) - len("mysql_native_password\x00")
	for n := range salt {
		if _, err := parseGreeting(whole[:n]); err == nil {
			t.Errorf("greeting of %d bytes: got no error", n)
		}
	}
}

func TestGreetingThatIsAnErrorIsReportedAsTheServersError(t *testing.T) {
	_, err := parseGreeting(append([]byte{0xff, 0x10, 0x04}, "Too many connections"...))
	if err == nil || !strings.Contains(err.Error(), "1040") || !strings.Contains(err.Error(), "Too many connections") {
		t.Errorf("got %v, want error 1040", err)
	}
}

func TestOKPacketGivesInsertIDAndWarnings(t *testing.T) {
	ok, err := parseOK([]byte{0, 1, 0xfd, 1, 2, 3, 2, 0, 4, 0})
	if want := (okPacket{affected: 1, insertID: 0x030201, status: 2, warnings: 4}); err != nil || ok != want {
		t.Errorf("got %+v, %v, want %+v", ok, err, want)
	}
	for _, bad := range [][]byte{nil, {0}, {0, 1, 0xfc}, {0, 1, 1, 2, 0, 0}, {0xfe, 0, 0, 0, 0}} {
		if _, err := parseOK(bad); err == nil {
			t.Errorf("%x: got no error", bad)
		}
	}
	if _, err := parseOK(append([]byte{0xff, 0xfb, 0x0f}, "#42S02Unknown SEQUENCE"...)); err == nil || err.Error() != "ERR 4091/42S02: Unknown SEQUENCE" {
		t.Errorf("got %v", err)
	}
}

func TestEOFWithWarningsOrMoreResultsIsRefused(t *testing.T) {
	if err := checkEOF([]byte{0xfe, 0, 0, 2, 0}); err != nil {
		t.Errorf("plain EOF: %v", err)
	}
	for name, p := range map[string][]byte{
		"warning":      {0xfe, 1, 0, 2, 0},
		"more results": {0xfe, 0, 0, 0x0a, 0},
		"row":          {1, '1'},
		"empty":        {},
	} {
		if err := checkEOF(p); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestRowMustHoldExactlyOneValue(t *testing.T) {
	if v, err := textValue([]byte{3, 'a', 'b', 'c'}); err != nil || string(v) != "abc" {
		t.Errorf("got %q, %v", v, err)
	}
	if v, err := binaryValue([]byte{0, 0, 1, 'a'}); err != nil || string(v) != "a" {
		t.Errorf("got %q, %v", v, err)
	}
	long := append([]byte{0xfc, 0x2c, 0x01}, bytes.Repeat([]byte{'x'}, 300)...)
	if v, err := textValue(long); err != nil || len(v) != 300 {
		t.Errorf("got %d bytes, %v", len(v), err)
	}
	for _, bad := range [][]byte{nil, {0xfb}, {2, 'a'}, {1, 'a', 1, 'b'}} {
		if _, err := textValue(bad); err == nil {
			t.Errorf("%x: got no error", bad)
		}
	}
	for _, bad := range [][]byte{{0, 4}, {0, 4, 1}, {1, 0, 1, 'a'}} {
		if _, err := binaryValue(bad); err == nil {
			t.Errorf("binary %x: got no error", bad)
		}
	}
}

func TestOnlyWholeDecimalNumbersAreNumbers(t *testing.T) {
	if v, err := parseUint([]byte("1234567890123456789")); err != nil || v != 1234567890123456789 {
		t.Errorf("got %d, %v", v, err)
	}
	for _, bad := range []string{"", "-1", "1.0", "99999999999999999999"} {
		if _, err := parseUint([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}
