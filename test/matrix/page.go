package matrix

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table is a table of the page: a line of headings, then the rows.
type Table [][]string

// The tables' names, in the marks around them.
const (
	CommandTable = "commands"
	ClientTable  = "clients"
	KindTable    = "kinds"
)

// servers are the columns of the page, in their order.
var servers = []string{"MariaDB 10.11", "MariaDB 11.8", "MySQL 9.7"}

// errNoRun says that there is no run on one of the page's servers.
var errNoRun = errors.New("there is no run")

// commandTable combines the runs on all servers.
func commandTable(runs []Commands) (Table, error) {
	byServer := make(map[string]Commands)
	for _, r := range runs {
		byServer[r.Server] = r
	}
	t := Table{append([]string{"command"}, servers...)}
	for i, server := range servers {
		run, ok := byServer[server]
		if !ok {
			return nil, fmt.Errorf("%w: the commands on %s", errNoRun, server)
		}
		for n, row := range run.Rows {
			if i == 0 {
				t = append(t, []string{row.Name})
			}
			if n+1 >= len(t) || t[n+1][0] != row.Name {
				return nil, fmt.Errorf("the run on %s has other commands than that on %s: %s", server, servers[0], row.Name)
			}
			t[n+1] = append(t[n+1], row.Cell)
		}
	}
	return t, nil
}

// order has the clients' logins in the order of the page, with their headings.
var order = []struct{ login, heading string }{
	{"password", "password"},
	{"native", "native"},
	{"tls", "TLS"},
	{"clear", "clear, TLS"},
	{"compress", "zlib"},
	{"zstd", "zstd"},
	{"relayed password", "relayed"},
	{"relayed tls", "relayed, TLS"},
	{"relayed full password", "relayed, RSA"},
	{"relayed full tls", "relayed, full, TLS"},
	{"relayed compress", "relayed, zlib"},
}

// clientTable says on which servers each client can use each login.
func clientTable(runs []Client) (Table, error) {
	var names []string
	cells := make(map[[2]string]map[string]bool) // client and login: servers
	for _, r := range runs {
		if !r.ok() {
			return nil, fmt.Errorf("%s with login %s on %s: %v", r.Client, r.Login, r.Server, r.Steps)
		}
		if !slices.Contains(names, r.Client) {
			names = append(names, r.Client)
		}
		key := [2]string{r.Client, r.Login}
		if cells[key] == nil {
			cells[key] = make(map[string]bool)
		}
		cells[key][r.Server] = true
		if !slices.ContainsFunc(order, func(o struct{ login, heading string }) bool { return o.login == r.Login }) {
			return nil, fmt.Errorf("login %s is none of the page's", r.Login)
		}
	}
	head := []string{"client"}
	for _, o := range order {
		head = append(head, o.heading)
	}
	t := Table{head}
	for _, name := range names {
		row := []string{name}
		for _, o := range order {
			row = append(row, where(cells[[2]string{name, o.login}]))
		}
		t = append(t, row)
	}
	return t, nil
}

// forms are the ways to insert rows, in the order of the page.
var forms = []string{
	"insert id", "LAST_INSERT_ID()", "OWNED BY", "[[bind]]", "rows of NEXTVAL", "rows, filled in", "prepared", "prepared, filled in", "batch", "batch, filled in",
	"INSERT ... SELECT", "RETURNING",
}

// kindTable says which forms each client can use with each kind of keys.
func kindTable(runs []Kind) (Table, error) {
	t := Table{append([]string{"kind", "client"}, forms...)}
	cells := make(map[[3]string]map[string]map[string]bool) // kind, client and form: cell: servers
	rows := make(map[[2]string]bool)
	for _, r := range runs {
		rows[[2]string{r.Kind, r.Client}] = true
		for form, cell := range r.Cells {
			if !slices.Contains(forms, form) {
				return nil, fmt.Errorf("form %s is none of the page's", form)
			}
			if cell != "yes" && cell != "none" && cell != "1235" {
				return nil, fmt.Errorf("%s of %s with kind %q on %s: %s", form, r.Client, r.Kind, r.Server, cell)
			}
			key := [3]string{r.Kind, r.Client, form}
			if cells[key] == nil {
				cells[key] = map[string]map[string]bool{"yes": {}, "none": {}, "1235": {}}
			}
			cells[key][cell][r.Server] = true
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		row := []string{of[0], of[1]}
		if of[0] == "" {
			row[0] = "plain"
		}
		for _, form := range forms {
			cell := cells[[3]string{of[0], of[1], form}]
			works, refused := where(cell["yes"]), where(cell["1235"])
			switch {
			case refused == "yes":
				refused = "1235"
			case refused != "":
				refused = "1235 on " + refused
			}
			if where(cell["none"]) != "" {
				works = "none"
			}
			row = append(row, strings.Trim(works+"; "+refused, "; "))
		}
		t = append(t, row)
	}
	return t, nil
}

// where names the servers on which something works.
func where(works map[string]bool) string {
	var names []string
	for _, server := range servers {
		if works[server] {
			names = append(names, server)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == len(servers):
		return "yes"
	case len(names) == 2 && strings.HasPrefix(names[0], "MariaDB") && strings.HasPrefix(names[1], "MariaDB"):
		return "MariaDB"
	}
	return strings.ReplaceAll(strings.Join(names, ", "), "MySQL 9.7", "MySQL")
}

// String writes the table as the page has it.
func (t Table) String() string {
	var b strings.Builder
	for i, row := range t {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// Parse reads a table of the page.
func Parse(page, name string) (Table, error) {
	_, text, _, err := cut(page, name)
	if err != nil {
		return nil, err
	}
	var t Table
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		t = append(t, cells)
	}
	if len(t) < 2 {
		return nil, fmt.Errorf("the table %s has no rows", name)
	}
	return t, nil
}

// Column returns the cells of a column by the first cell of their row, or nil without such a
// column.
func (t Table) Column(heading string) map[string]string {
	at := slices.Index(t[0], heading)
	if at < 0 {
		return nil
	}
	cells := make(map[string]string)
	for _, row := range t[1:] {
		if at < len(row) {
			cells[row[0]] = row[at]
		}
	}
	return cells
}

// put returns the page with the named table replaced.
func put(page, name string, t Table) (string, error) {
	before, _, after, err := cut(page, name)
	if err != nil {
		return "", err
	}
	return before + "\n" + t.String() + "\n" + after, nil
}

// cut splits a page at the contents between the marks of a table. The marks stay in before and
// after.
func cut(page, name string) (before, text, after string, err error) {
	begin, end := "<!-- "+name+": made by a test -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(page, begin)
	text, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("the page has no place for the table %s, between %q and %q", name, begin, end)
	}
	return head + begin, text, end + tail, nil
}
