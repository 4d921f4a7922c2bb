package protocol

import (
	"bytes"
	"math"
	"testing"
)

func TestLengthEncodedIntegers(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "\x00", 250: "\xfa", 251: "\xfc\xfb\x00", 0xffff: "\xfc\xff\xff", 0x10000: "\xfd\x00\x00\x01", 0xffffff: "\xfd\xff\xff\xff",
		0x1000000: "\xfe\x00\x00\x00\x01\x00\x00\x00\x00", math.MaxUint64: "\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		got := AppendLenEncInt([]byte("x"), n)
		if string(got) != "x"+want {
			t.Errorf("%d: got %x, want %x", n, got[1:], want)
		}
		if m, size, ok := ReadLenEncInt(append(got[1:], "more"...)); m != n || size != len(want) || !ok {
			t.Errorf("read %x: got %d, %d, %v, want %d, %d", want, m, size, ok, n, len(want))
		}
		for cut := range len(want) {
			if _, size, ok := ReadLenEncInt([]byte(want[:cut])); ok || size != 0 {
				t.Errorf("%x is read", want[:cut])
			}
		}
	}
	for _, b := range []string{"\xfb", "\xff", "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if _, _, ok := ReadLenEncInt([]byte(b)); ok {
			t.Errorf("%x is read as an integer", b)
		}
	}
}

func TestLengthEncodedStrings(t *testing.T) {
	for _, n := range []int{0, 1, 250, 251, 65535, 65536} {
		want := bytes.Repeat([]byte("s"), n)
		b := AppendLenEncBytes(nil, want)
		if string(b) != string(AppendLenEncBytes(nil, string(want))) {
			t.Errorf("%d: string and bytes differ", n)
		}
		got, size, ok := ReadLenEncBytes(append(b, "more"...))
		if !ok || size != len(b) || !bytes.Equal(got, want) || cap(got) != n {
			t.Errorf("%d bytes: got %d of %d, cap %d, %v", n, len(got), size, cap(got), ok)
		}
		if _, _, ok := ReadLenEncBytes(b[:len(b)-1]); ok {
			t.Errorf("%d bytes less one are read", n)
		}
	}
	for _, b := range []string{"", "\xfb", "\xfe\xff\xff\xff\xff\xff\xff\xff\xffabc", "\xfe\xff\xff\xff\xff\xff\xff\xff\x7fabc"} {
		if _, size, ok := ReadLenEncBytes([]byte(b)); ok || size != 0 {
			t.Errorf("%x is read as a string", b)
		}
	}
}

// Checklist 12.
func TestPacketsAreCutAt16MB(t *testing.T) {
	for _, c := range []struct {
		size    int
		packets []int
	}{
		{0, []int{0}},
		{5, []int{5}},
		{MaxFragment - 1, []int{MaxFragment - 1}},
		{MaxFragment, []int{MaxFragment, 0}},
		{MaxFragment + 1, []int{MaxFragment, 1}},
		{2 * MaxFragment, []int{MaxFragment, MaxFragment, 0}},
	} {
		payload := randomBytes(c.size)
		b, next := AppendPacket([]byte("head"), payload, 254)
		if got, want := next, uint8(254+len(c.packets)); got != want {
			t.Errorf("%d: next number: got %d, want %d", c.size, got, want)
		}
		if string(b[:4]) != "head" {
			t.Fatalf("%d: what was there before is gone", c.size)
		}
		b = b[4:]
		for i, want := range c.packets {
			if got := PayloadLen(b); got != want || b[3] != uint8(254+i) {
				t.Fatalf("%d: packet %d: got length %d and number %d, want %d and %d", c.size, i, got, b[3], want, uint8(254+i))
			}
			if !bytes.Equal(b[HeaderSize:HeaderSize+want], payload[:want]) {
				t.Fatalf("%d: packet %d: other bytes", c.size, i)
			}
			b, payload = b[HeaderSize+want:], payload[want:]
		}
		if len(b) != 0 || len(payload) != 0 {
			t.Errorf("%d: %d bytes too many, %d missing", c.size, len(b), len(payload))
		}
	}
}

func TestPutHeaderIsReadByPayloadLen(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 0x010203, MaxFragment} {
		b := []byte{9, 9, 9, 9, 9}
		PutHeader(b, n, 7)
		if got := PayloadLen(b); got != n || b[3] != 7 || b[4] != 9 {
			t.Errorf("%d: got %x", n, b)
		}
	}
}

func FuzzLenEnc(f *testing.F) {
	for _, b := range []string{"", "\x00", "\x03abc", "\xfb", "\xfc\x03\x00abc", "\xfd\x03\x00\x00abc", "\xfe\x03\x00\x00\x00\x00\x00\x00\x00abc", "\xff"} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		val, size, ok := ReadLenEncBytes(b)
		n, head, isInt := ReadLenEncInt(b)
		if !ok {
			if size != 0 || val != nil || isInt && n <= uint64(len(b)-head) {
				t.Fatalf("%x: got %x, %d, though its length is %d", b, val, size, n)
			}
			return
		}
		if uint64(len(val)) != n || size != head+len(val) || size > len(b) || !bytes.Equal(val, b[head:size]) {
			t.Fatalf("%x: got %x, %d with a length of %d", b, val, size, n)
		}
		// The encoder's bytes decode to the same value.
		if again, k, ok := ReadLenEncBytes(AppendLenEncBytes(nil, val)); !ok || !bytes.Equal(again, val) || k > size {
			t.Fatalf("%x: written and read again: %x, %v", val, again, ok)
		}
	})
}
