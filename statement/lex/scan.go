package lex

// Scan follows a text that comes in pieces and is never in memory as a whole. It finds out whether
// the text may have a second statement. It knows quotes and comments only. The zero value with a
// Mode is ready for use.
type Scan struct {
	Mode Mode

	state  scanState
	quote  byte // closes the string or name
	lead   byte // first byte of a character whose next byte has not come, or 0
	second bool
}

type scanState uint8

const (
	scanCode      scanState = iota
	scanQuoted              // inside quotes
	scanEscape              // after a backslash inside quotes
	scanSlash               // after /
	scanOpen                // after /*
	scanOpenM               // after /*M
	scanComment             // inside /* ... */
	scanStar                // after * inside a comment
	scanDash                // after -
	scanDashes              // after --
	scanLine                // inside a comment to the end of the line
	scanSemicolon           // after a semicolon and nothing but space
	scanEnd                 // after a NUL that ends the text
)

// Next reads the next piece of the text. It returns true if a second statement may have begun, or
// if the text cannot be followed: code in a comment that not every server runs.
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
			if s.state == scanEscape { // the backslash escapes the first byte only
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
		case c == '-': // these two dashes may begin a comment
		default:
			s.state = scanCode
			s.code(c)
		}
	default:
		s.code(c)
	}
}

// code handles a byte outside of quotes and comments.
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

// escapes reports whether a backslash escapes within the open quotes.
func (s *Scan) escapes() bool {
	return !s.Mode.NoBackslashEscapes && s.quote != '`' && (s.quote == '\'' || !s.Mode.ANSIQuotes)
}

// is reports whether a byte of a single-byte character set has a class: see upperBytes.
func (s *Scan) is(c, class byte) bool {
	return c >= 0x80 && s.Mode.Charset.single() && s.Mode.Charset.upper(c) == class
}
