package lex

// Server says which server reads a text. Servers run the code in comments such as /*!80000 ... */
// by their versions. The zero value is a server that is not known. It is small, since the lexer
// is copied often.
type Server uint32

const mariaDB Server = 1 << 31

// MariaDB and MySQL return the server with a version in one number, as in such comments: 101119
// for 10.11.19. 0 is a server that is not known.
func MariaDB(version uint32) Server {
	if version == 0 {
		return 0
	}
	return Server(version) | mariaDB
}

// MySQL: see MariaDB.
func MySQL(version uint32) Server { return Server(version) }

// Known reports whether it is known which server it is.
func (s Server) Known() bool { return s != 0 }

func (s Server) isMariaDB() bool { return s&mariaDB != 0 }

func (s Server) IsMySQL() bool { return s != 0 && s&mariaDB == 0 }

// everyServerVersion: code in a comment with a version up to this runs on every
// server that the proxy can stand in front of.
const everyServerVersion = 50699

// runs reports whether the server runs the code in a comment with a version. MariaDB skips
// those of MySQL 5.7 to 9, of which it has not all features, unless the comment is its own.
func (s Server) runs(version uint32, mariaOnly bool) bool {
	if Server(version) > s&^mariaDB {
		return false
	}
	return !s.isMariaDB() || mariaOnly || version <= everyServerVersion || version > 99999
}

// codeVersion reads the version at the beginning of an executable comment. digits is 0 where
// there is none: then the digits, if any, are code. MySQL takes a sixth digit only in front
// of white space, MariaDB always.
func (s Server) codeVersion(code []byte, cs Charset) (version uint32, digits int) {
	for digits < 6 && digits < len(code) && classes[code[digits]] == cDigit {
		digits++
	}
	if digits < 5 {
		return 0, 0
	}
	if digits == 6 && s.IsMySQL() {
		six := len(code) > 6 && (classes[code[6]] == cSpace || code[6] >= 0x80 && cs.single() && cs.upper(code[6]) == 's')
		if !six {
			digits = 5
		}
	}
	for _, c := range code[:digits] {
		version = version*10 + uint32(c-'0')
	}
	return version, digits
}
