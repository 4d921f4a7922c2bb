package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

func testSalt() Salt {
	var s Salt
	copy(s[:], "0123456789abcdefghij")
	return s
}

var greetings = []Greeting{
	{Version: "8.4.3", ConnectionID: 1<<31 + 7, Salt: testSalt(), Capabilities: Relayable&^Extended | SSL, Collation: 255, Status: Autocommit, Plugin: "caching_sha2_password"},
	{Version: "5.5.5-10.11.6-MariaDB", ConnectionID: 1, Salt: testSalt(), Capabilities: Relayable&^LongPassword | 0x1d<<32, Collation: 8, Status: Autocommit, Plugin: "mysql_native_password"},
	{Version: "", Salt: testSalt(), Capabilities: Protocol41 | SecureConnection | LongPassword},
}

func TestAGreetingSurvivesEncodingAndDecoding(t *testing.T) {
	for _, want := range greetings {
		b, err := want.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseGreeting(b)
		if err != nil || *got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// The bytes are a MariaDB 10.11 server's.
func TestAMariaDBGreetingIsUnderstood(t *testing.T) {
	b, err := hex.DecodeString("0a352e352e352d31302e31312e31392d4d6172696144422d302b6465623132753100" +
		"4b000000" + "572f256758667846" + "00" + "fef7" + "08" + "0200" + "ff81" + "15" + "000000000000" + "1d000000" +
		"367a28534b5d71402c58583000" + "6d7973716c5f6e61746976655f70617373776f726400")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseGreeting(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Greeting{
		Version: "5.5.5-10.11.19-MariaDB-0+deb12u1", ConnectionID: 75, Salt: Salt([]byte("W/%gXfxF6z(SK]q@,XX0")),
		Capabilities: 0x1d_81fff7fe, Collation: 8, Status: Autocommit, Plugin: "mysql_native_password",
	}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if !got.IsMariaDB() || greetings[0].IsMariaDB() {
		t.Errorf("IsMariaDB: got %v for MariaDB and %v for MySQL", got.IsMariaDB(), greetings[0].IsMariaDB())
	}
}

// Checklist 1.
func TestAnErrorInPlaceOfAGreetingIsAServerError(t *testing.T) {
	for payload, want := range map[string]ServerError{
		"\xff\x10\x04Too many connections":              {1040, "", "Too many connections"},
		"\xff\x69\x04Host 'x' is blocked":               {1129, "", "Host 'x' is blocked"},
		"\xff\x15\x04#28000Access denied for user 'x'@": {1045, "28000", "Access denied for user 'x'@"},
		"\xff\x15\x04#280":                              {1045, "", "#280"},
	} {
		_, err := ParseGreeting([]byte(payload))
		var got *ServerError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%q: got %v, want %+v", payload, err, want)
		}
	}
	if _, err := ParseGreeting([]byte("\xff\x10")); !errors.Is(err, ErrMalformed) {
		t.Errorf("short ERR: got %v, want ErrMalformed", err)
	}
}

func TestAGreetingCutOffAnywhereIsRefused(t *testing.T) {
	for _, g := range greetings[:2] {
		b, err := g.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		// Behind the salt stands only the plugin's name, whose end may be missing.
		saltEnd := len(b) - len(g.Plugin) - 1
		for n := range saltEnd - 1 {
			if got, err := ParseGreeting(b[:n]); err == nil {
				t.Errorf("%d of %d bytes: got %+v, want an error", n, len(b), got)
			}
		}
	}
}

func TestForeignGreetingsAreRefusedWithAReason(t *testing.T) {
	for payload, want := range map[string]string{
		"\x09" + "3.23.49\x00":                             "protocol version 9",
		"SSH-2.0-OpenSSH_9.2\r\n":                          "is it a MySQL server",
		"\x0a" + "4.0.30\x00" + strings.Repeat("\x00", 60): "no 4.1 protocol",
	} {
		if _, err := ParseGreeting([]byte(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", payload, err, want)
		}
	}
}

func TestASaltHoldsNoByteThatEndsOrSplitsAString(t *testing.T) {
	seen := map[Salt]bool{}
	for range 2000 {
		s := NewSalt()
		if seen[s] {
			t.Fatalf("salt %x was given twice", s)
		}
		seen[s] = true
		for _, b := range s {
			if b == 0 || b == '$' || b > 127 {
				t.Fatalf("salt %x has the byte %#x", s, b)
			}
		}
	}
}

// allLogin are the flags that give a response all its fields.
const allLogin = loginCapabilities | LongPassword

var responses = []HandshakeResponse{
	{Capabilities: allLogin, MaxPacket: 1 << 24, Collation: 45, User: "app", AuthResponse: bytes.Repeat([]byte{7}, 32), Database: "album0", Plugin: "caching_sha2_password", Attrs: Attrs(nil).With("_client_name", "test").With("k", "")},
	{Capabilities: allLogin, User: "a", AuthResponse: bytes.Repeat([]byte{0}, 300), Attrs: Attrs{}},
	{Capabilities: Protocol41 | SecureConnection | 0x1d<<32, User: "app", AuthResponse: bytes.Repeat([]byte{9}, 20)},
	{Capabilities: Protocol41 | PluginAuth, User: "", AuthResponse: []byte("clear"), Plugin: "x"},
	{Capabilities: Protocol41 | SecureConnection | ConnectWithDB | LongPassword, User: "ü", AuthResponse: []byte{}, Database: "d"},
}

func TestAHandshakeResponseSurvivesEncodingAndDecoding(t *testing.T) {
	for _, want := range responses {
		b, err := want.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseHandshakeResponse(b, ^Capability(0))
		if err != nil || !sameResponse(got, &want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func sameResponse(a, b *HandshakeResponse) bool {
	x, y := *a, *b
	equal := bytes.Equal(x.AuthResponse, y.AuthResponse) && bytes.Equal(x.Attrs, y.Attrs)
	x.AuthResponse, y.AuthResponse, x.Attrs, y.Attrs = nil, nil, nil, nil
	return equal && reflect.DeepEqual(x, y)
}

func TestAHandshakeResponseCutOffIsRefusedOrShortByWholeFields(t *testing.T) {
	want := responses[0]
	b, err := want.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	attrsStart := len(b) - len(AppendLenEncBytes(nil, []byte(want.Attrs)))
	pluginStart := attrsStart - len(want.Plugin) - 1
	for n := range b {
		got, err := ParseHandshakeResponse(b[:n], ^Capability(0))
		switch {
		case n < pluginStart-len(want.Database)-1, n > pluginStart-len(want.Database)-1 && n < pluginStart, n > attrsStart:
			if err == nil {
				t.Errorf("%d of %d bytes: got %+v, want an error", n, len(b), got)
			}
		default: // the end of the last fields may be missing
			if err != nil || got.User != want.User || !bytes.Equal(got.AuthResponse, want.AuthResponse) || !strings.HasPrefix(want.Plugin, got.Plugin) {
				t.Errorf("%d of %d bytes: got %+v, %v", n, len(b), got, err)
			}
		}
	}
}

func TestFlagsThatWereNotOfferedAreTakenOffBeforeTheFieldsAreRead(t *testing.T) {
	r := HandshakeResponse{Capabilities: Protocol41 | SecureConnection | PluginAuth, User: "app", AuthResponse: []byte("x"), Plugin: "p"}
	b, err := r.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	// The client sets flags whose fields it does not send, as libmysql does.
	binary.LittleEndian.PutUint32(b, uint32(r.Capabilities|MultiStatements|ConnectAttrs|ConnectWithDB))
	got, err := ParseHandshakeResponse(b, Protocol41|SecureConnection|PluginAuth)
	if err != nil || got.Capabilities != r.Capabilities || got.Plugin != "p" || got.Database != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnspeakableLoginsAreNotEncoded(t *testing.T) {
	for what, r := range map[string]HandshakeResponse{
		"NUL in user":     {Capabilities: allLogin, User: "a\x00b"},
		"NUL in database": {Capabilities: allLogin, Database: "a\x00b"},
		"NUL in plugin":   {Capabilities: allLogin, Plugin: "a\x00b"},
		"NUL in answer":   {Capabilities: Protocol41, AuthResponse: []byte{1, 0}},
		"long answer":     {Capabilities: Protocol41 | SecureConnection, AuthResponse: make([]byte, 256)},
		"old protocol":    {Capabilities: SecureConnection},
	} {
		if b, err := r.Append(nil); err == nil {
			t.Errorf("%s: got %x, want an error", what, b)
		}
	}
	if _, err := (&Greeting{Version: "8\x00"}).Append(nil); err == nil {
		t.Error("a greeting with NUL in its version was encoded")
	}
	if _, err := (&AuthSwitch{}).Append(nil); err == nil {
		t.Error("an auth switch without plugin was encoded")
	}
}

func TestAttributesKeepOrderAndStayUnderTheServersLimit(t *testing.T) {
	a := Attrs(nil).With("b", "1").With("a", "2").With("b", "3")
	var got []string
	for k, v := range a.All() {
		got = append(got, k+"="+v)
	}
	if want := []string{"b=1", "a=2", "b=3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if v, ok := a.Get("b"); v != "1" || !ok {
		t.Errorf("Get: got %q, %v, want the first", v, ok)
	}
	full := Attrs(nil).With("k", strings.Repeat("x", MaxAttrs-10))
	if got := full.With("one", "more than fits"); !bytes.Equal(got, full) {
		t.Errorf("an attribute too many was added: %d bytes", len(got))
	}
	if _, err := ParseAttrs(make([]byte, MaxAttrs+1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("attributes over the limit: got %v, want ErrMalformed", err)
	}
	if _, err := ParseAttrs([]byte("\x01k")); !errors.Is(err, ErrMalformed) {
		t.Errorf("key without value: got %v, want ErrMalformed", err)
	}
}

func changeUserPayload(r *ChangeUserRequest, capabilities Capability) []byte {
	b := append([]byte{byte(ComChangeUser)}, r.User...)
	b = append(b, 0, byte(len(r.AuthResponse)))
	b = append(b, r.AuthResponse...)
	b = append(append(b, r.Database...), 0)
	if !r.HasCollation {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, r.Collation)
	if capabilities.Has(PluginAuth) {
		b = append(append(b, r.Plugin...), 0)
	}
	if capabilities.Has(ConnectAttrs) {
		b = AppendLenEncBytes(b, []byte(r.Attrs))
	}
	return b
}

func TestAChangeOfUserIsUnderstoodInAllItsLengths(t *testing.T) {
	for _, want := range []ChangeUserRequest{
		{User: "other", AuthResponse: []byte("01234567890123456789"), Database: "album1", HasCollation: true, Collation: 305, Plugin: "mysql_native_password", Attrs: Attrs(nil).With("a", "b")},
		{User: "other", AuthResponse: []byte{}, Database: ""},
		{User: "", AuthResponse: []byte{}, HasCollation: true, Collation: 45, Attrs: Attrs{}},
	} {
		got, err := ParseChangeUser(changeUserPayload(&want, allLogin), allLogin)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	full := changeUserPayload(&ChangeUserRequest{User: "other", AuthResponse: []byte("x"), Database: "d"}, allLogin)
	for n := range full {
		if got, err := ParseChangeUser(full[:n], allLogin); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes: got %+v, %v, want ErrMalformed", n, len(full), got, err)
		}
	}
}

func FuzzGreeting(f *testing.F) {
	for _, g := range greetings {
		b, err := g.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\xff\x10\x04Too many connections"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGreeting(b)
		if err != nil {
			return
		}
		again, err := g.Append(nil)
		if err != nil {
			t.Fatalf("a greeting that was read cannot be written: %v", err)
		}
		got, err := ParseGreeting(again)
		if err != nil || *got != *g {
			t.Errorf("got %+v, %v, want %+v", got, err, g)
		}
	})
}

func FuzzHandshakeResponse(f *testing.F) {
	for _, r := range responses {
		b, err := r.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint64(loginCapabilities))
		f.Add(b, ^uint64(0))
		f.Add(b, ^uint64(LongPassword))
	}
	f.Fuzz(func(t *testing.T, b []byte, offered uint64) {
		isSSLRequest(b)
		r, err := ParseHandshakeResponse(b, Capability(offered))
		if err != nil {
			return
		}
		if r.Capabilities&^(Capability(offered)|LongPassword) != 0 || r.Capabilities.Has(LongPassword) && r.Capabilities&Extended != 0 {
			t.Errorf("got flags %#x, offered were %#x", r.Capabilities, offered)
		}
		for range r.Attrs.All() {
		}
		r.Capabilities |= Protocol41
		again, err := r.Append(nil)
		if err != nil {
			t.Fatalf("a response that was read cannot be written: %v", err)
		}
		got, err := ParseHandshakeResponse(again, Capability(offered)|Protocol41)
		if err != nil || !sameResponse(got, r) {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
	})
}

func FuzzChangeUser(f *testing.F) {
	f.Add(changeUserPayload(&ChangeUserRequest{User: "u", AuthResponse: []byte("x"), Database: "d", HasCollation: true, Plugin: "p", Attrs: Attrs(nil).With("a", "b")}, allLogin), uint32(allLogin))
	f.Add([]byte("\x11u\x00x\x00d\x00"), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, capabilities uint32) {
		r, err := ParseChangeUser(b, Capability(capabilities))
		if err != nil {
			return
		}
		c := Capability(capabilities) | SecureConnection
		if len(r.AuthResponse) > 255 {
			return // only the form that ends with NUL can express this
		}
		if r.Attrs == nil {
			r.Attrs = Attrs{}
		}
		got, err := ParseChangeUser(changeUserPayload(r, c), c)
		if err != nil || got.User != r.User || got.Database != r.Database || got.Plugin != r.Plugin ||
			!bytes.Equal(got.AuthResponse, r.AuthResponse) || got.Collation != r.Collation || !bytes.Equal(got.Attrs, r.Attrs) {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
	})
}

// Any client may leave a packet of the login unfinished.
func TestAnUnfinishedLoginHoldsLittleMemory(t *testing.T) {
	p := rawFramePair(t, mysqltest.Zlib)
	unfinished, _ := AppendPacket(nil, make([]byte, loginLimit), 1)
	p.say(unfinished[:len(unfinished)-1])
	if err := p.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	l := ServerLogin{}
	if _, err := l.read(p.Conn, "login"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want a timeout", err)
	}
	if got, most := len(p.buf), 256<<10; got > most {
		t.Errorf("got %d bytes of memory, want at most %d", got, most)
	}
}
