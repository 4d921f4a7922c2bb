package lex

// Scan follows a text that nobody holds, piece by piece, and finds out whether there may be a
// second statement in it. It knows quotes and comments and nothing else. The zero value with a
// Mode is ready for use.
type Scan struct {
	Mode Mode

	state  scanState
	quote  byte // that closes the string or name
	lead   byte // of a character of several bytes, whose next byte has not come; 0: none
	second bool
}

type scanState uint8

const (
	scanCode      scanState = iota
	scanQuoted              // inside quotes
	scanEscape              // behind a backslash there
	scanSlash               // behind /
	scanOpen                // behind /*
	scanOpenM               // behind /*M
	scanComment             // inside /* ... */
	scanStar                // behind * there
	scanDash                // behind -
	scanDashes              // behind --
	scanLine                // inside a comment that ends with the line
	scanSemicolon           // behind a semicolon, with nothing but space since
	scanEnd                 // behind a NUL that ends the text
)

// Next takes the next piece of the text. It reports whether a second statement may have begun, or
// what has come cannot be followed: code in a comment, which not every server runs.
func (s *Scan) Next(piece []byte) bool {
	for _, c := range piece {
		if s.second {
			break
		}
		s.next(c)
	}
	return s.second
}

func (s *Scan) next(c byte) {
	cs := s.Mode.Charset
	if lead := s.lead; lead != 0 {
		s.lead = 0
		if cs.CharLen([]byte{lead, c}, 0) == 2 {
			if s.state == scanEscape { // the backslash has hidden the first byte alone
				s.state = scanQuoted
				s.next(c)
			}
			return
		}
	}
	if c >= 0x80 && cs.Multi() {
		switch s.state {
		case scanCode, scanQuoted:
			s.lead = c
			return
		}
	}
	switch s.state {
	case scanQuoted:
		switch {
		case c == s.quote:
			s.state = scanCode
		case c == '\\' && s.escapes():
			s.state = scanEscape
		}
	case scanEscape:
		s.state = scanQuoted
	case scanOpen, scanOpenM:
		switch {
		case c == '!':
			s.second = true
		case c == 'M' && s.state == scanOpen:
			s.state = scanOpenM
		default:
			s.state = scanComment
			if c == '*' {
				s.state = scanStar
			}
		}
	case scanComment, scanStar:
		switch {
		case c == '/' && s.state == scanStar:
			s.state = scanCode
		case c == '*':
			s.state = scanStar
		default:
			s.state = scanComment
		}
	case scanLine:
		if c == '\n' {
			s.state = scanCode
		}
	case scanSemicolon:
		switch {
		case c == 0:
			s.state = scanEnd
		case c != ';' && classes[c] != cSpace && !s.is(c, 's'):
			s.second = true
		}
	case scanEnd:
	case scanSlash:
		if s.state = scanCode; c == '*' {
			s.state = scanOpen
			return
		}
		s.code(c)
	case scanDash:
		if s.state = scanCode; c == '-' {
			s.state = scanDashes
			return
		}
		s.code(c)
	case scanDashes:
		switch {
		case c == '\n':
			s.state = scanCode
		case c <= ' ' || c == 0x7f || s.is(c, 's') || s.is(c, 'c'):
			s.state = scanLine
		case c == '-': // the last two may begin one
		default:
			s.state = scanCode
			s.code(c)
		}
	default:
		s.code(c)
	}
}

// code takes a byte of the text outside of quotes and comments.
func (s *Scan) code(c byte) {
	switch c {
	case '\'', '"', '`':
		s.state, s.quote = scanQuoted, c
	case '/':
		s.state = scanSlash
	case '-':
		s.state = scanDash
	case '#':
		s.state = scanLine
	case ';':
		s.state = scanSemicolon
	case '[':
		s.second = s.Mode.Brackets
	default:
		if c >= 0x80 && s.Mode.Charset.Multi() {
			s.lead = c
		}
	}
}

// escapes reports whether a backslash means something in the quotes that are open.
func (s *Scan) escapes() bool {
	return !s.Mode.NoBackslashEscapes && s.quote != '`' && (s.quote == '\'' || !s.Mode.ANSIQuotes)
}

// is reports whether a byte of a single-byte character set is of a class: see upperBytes.
func (s *Scan) is(c, class byte) bool {
	return c >= 0x80 && s.Mode.Charset.single() && s.Mode.Charset.upper(c) == class
}
