package lex

// Server is the server that reads a text. By its version a server decides whether to run the code
// in a comment such as /*!80000 ... */. The zero value is an unknown server. It is small, since
// lexers are copied often.
type Server uint32

const mariaDB Server = 1 << 31

// MariaDB returns the MariaDB server of a version, given as a number as in such comments: 101119 is
// 10.11.19. 0 is an unknown server.
func MariaDB(version uint32) Server {
	if version == 0 {
		return 0
	}
	return Server(version) | mariaDB
}

// MySQL returns the MySQL server of a version, as MariaDB does.
func MySQL(version uint32) Server { return Server(version) }

// Identified reports whether the server is known.
func (s Server) Identified() bool { return s != 0 }

func (s Server) isMariaDB() bool { return s&mariaDB != 0 }

func (s Server) IsMySQL() bool { return s != 0 && s&mariaDB == 0 }

// everyServerVersion is the highest version in a comment whose code runs on every server that the
// proxy supports.
const everyServerVersion = 50699

// runs reports whether the server runs the code in a comment with a version. MariaDB skips the
// versions of MySQL 5.7 to 9, since it lacks some of their features, unless the comment is
// MariaDB's own.
func (s Server) runs(version uint32, mariaOnly bool) bool {
	if Server(version) > s&^mariaDB {
		return false
	}
	return !s.isMariaDB() || mariaOnly || version <= everyServerVersion || version > 99999
}

// codeVersion reads the version at the start of an executable comment. digits is the number of its
// digits. It is 0 if there is no version: digits there are code. MySQL reads a sixth digit only
// before white space, MariaDB always.
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
