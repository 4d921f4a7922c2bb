package sequence

import "fmt"

// literal quotes a configured name for a statement without arguments. Hexadecimal cannot be broken
// out of, whatever the sql_mode.
func literal(s string) string {
	if s == "" {
		return "''"
	}
	return fmt.Sprintf("_utf8mb4 X'%X'", s)
}
