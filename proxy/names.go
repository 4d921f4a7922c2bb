package proxy

import (
	"errors"
	"unicode/utf8"

	"seqproxy/sequence"
	"seqproxy/statement"
)

// nameInUTF8 returns the name of a sequence, as it stands in a client's text, in the
// character set in which the sequence table is asked. The result is name itself where
// nothing has to be changed.
func (s *session) nameInUTF8(name []byte, charset string) ([]byte, error) {
	if ascii(name) {
		return name, nil
	}
	switch charset {
	case "utf8mb4", "utf8mb3", "utf8", "binary":
		if utf8.Valid(name) {
			return name, nil
		}
	case "latin1":
		converted := make([]byte, 0, 2*len(name))
		for _, c := range name {
			converted = utf8.AppendRune(converted, latin1(c))
		}
		return converted, nil
	case "": // another sequence could be meant by these bytes
	default:
		converted, err := s.set.Sequences.InUTF8(&s.patience, charset, name)
		if err = s.patience.over(err); !errors.Is(err, sequence.ErrNoText) {
			return converted, err
		}
	}
	return nil, notSupported("the sequence name %q in this character set is not supported: SET NAMES utf8mb4, or use ASCII letters", name)
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// latin1 returns the character that a byte of MySQL's latin1 is: that is cp1252, with
// the bytes which cp1252 leaves out as control characters
// (https://dev.mysql.com/doc/refman/8.4/en/charset-we-sets.html).
func latin1(c byte) rune {
	const upper = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	if c < 0x80 || c > 0x9f {
		return rune(c)
	}
	return []rune(upper)[c-0x80]
}

// ofSequenceTable stands in ddl.Sequence.Schemas for a name that had the schema of the sequence table in
// front: it can be no server's.
const ofSequenceTable = -1

// convertNames is nameInUTF8 for every name in an analysed text, in place. Where
// unknown names are left to the server, so are those that cannot be converted: they are
// no name then.
func (s *session) convertNames(st *statement.Statement, charset string) error {
	for i := range st.Calls {
		call := &st.Calls[i]
		switch call.Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
		default:
			continue
		}
		name, err := s.nameInUTF8(call.Name, charset)
		if err != nil && s.set.Unknown != UnknownRelay {
			return err
		}
		call.Name = name
		if call.Schema != nil {
			if call.Schema, err = s.nameInUTF8(call.Schema, charset); err != nil && s.set.Unknown != UnknownRelay {
				return err
			}
		}
	}
	ddl := st.Sequence
	if ddl == nil {
		return nil
	}
	for i := range ddl.Names {
		if n := ddl.Schemas[i]; n > 0 && string(ddl.Names[i][:n]) == s.set.Sequences.Schema() {
			ddl.Names[i], ddl.Schemas[i] = ddl.Names[i][n+1:], ofSequenceTable
		}
		if err := s.convert(&ddl.Names[i], charset); err != nil {
			return err
		}
	}
	for _, text := range [...]*[]byte{&ddl.Pattern, &ddl.Comment, &ddl.OwnerSchema, &ddl.OwnerTable, &ddl.OwnerColumn} {
		if err := s.convert(text, charset); err != nil {
			return err
		}
	}
	if st.Proxy != nil {
		if err := s.convert(&st.Proxy.Shard, charset); err != nil {
			return err
		}
		return s.convert(&st.Proxy.Address, charset)
	}
	return nil
}

// convert is nameInUTF8 in place.
func (s *session) convert(name *[]byte, charset string) (err error) {
	if len(*name) > 0 {
		*name, err = s.nameInUTF8(*name, charset)
	}
	return err
}
