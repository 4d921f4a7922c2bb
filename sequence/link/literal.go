package link

import "fmt"

// Literal quotes a configured name for a statement without arguments. Hexadecimal allows no escape,
// whatever the sql_mode.
func Literal(s string) string {
	if s == "" {
		return "''"
	}
	return fmt.Sprintf("_utf8mb4 X'%X'", s)
}
