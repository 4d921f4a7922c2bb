package ddl

import (
	"fmt"
	"strings"

	"seqproxy/statement/lex"
)

// Statements to the proxy itself begin with SEQPROXY, or with SHOW SEQPROXY if they answer with
// rows. No server knows that word. So a text that begins with it and is no such statement is a
// Problem, which lists those that there are.

// ProxyVerb says what a ProxyCommand asks for.
type ProxyVerb uint8

// The verbs.
const (
	ShowSequenceServers  ProxyVerb = iota + 1 // SHOW SEQPROXY SEQUENCE SERVERS
	AddSequenceServer                         // SEQPROXY ADD SEQUENCE SERVER 'host:port'
	RemoveSequenceServer                      // SEQPROXY REMOVE SEQUENCE SERVER 'host:port'
	ReloadConfig                              // SEQPROXY RELOAD [TLS]
	PauseShard                                // SEQPROXY PAUSE [SHARD s]
	ResumeShard                               // SEQPROXY RESUME [SHARD s]
	ShutdownProxy                             // SEQPROXY SHUTDOWN [WAIT_FOR_CLIENTS | IMMEDIATE]
	FlushLogs                                 // SEQPROXY FLUSH LOGS
	ShowHelp                                  // SHOW SEQPROXY HELP
	ShowVersion                               // SHOW SEQPROXY VERSION
	ShowStatus                                // SHOW SEQPROXY STATUS [LIKE 'pattern']
	ShowVariables                             // SHOW SEQPROXY VARIABLES [LIKE 'pattern']
	ShowSessions                              // SHOW SEQPROXY SESSIONS
	ShowNodes                                 // SHOW SEQPROXY NODES
	ShowShards                                // SHOW SEQPROXY SHARDS
	ShowPools                                 // SHOW SEQPROXY POOLS
	ShowUsers                                 // SHOW SEQPROXY USERS
	ShowConfig                                // SHOW SEQPROXY CONFIG
	ShowConfigDiff                            // SHOW SEQPROXY CONFIG DIFF
)

// ProxyCommand is what a statement of kind Seqproxy asks for. Verb is 0 if its words are a Problem.
type ProxyCommand struct {
	Verb ProxyVerb
	// Show is set for SHOW SEQPROXY, which changes nothing.
	Show bool
	// Address is the 'host:port' of ADD and REMOVE, decoded, in the client's character
	// set; valid as long as the Reader's Memory.
	Address []byte
	// Pattern is that of LIKE, decoded as Address is.
	HasPattern bool
	Pattern    []byte
	// Force is FORCE, which ABOVE n may follow.
	Force bool
	Above Number
	// WritersStopped is WITH DIRECT WRITERS STOPPED: the operator says that only seqproxy counts in
	// the tables.
	WritersStopped bool
	// Shard is the name behind SHARD, decoded as Address is; empty: all shards.
	Shard []byte
	// Word is the one word that stands behind RELOAD or SHUTDOWN, in upper case, or "".
	Word string
}

// proxyOption is a set of what may follow the words of a proxyForm.
type proxyOption uint8

const (
	proxyAddress proxyOption = 1 << iota // 'host:port', which is required
	proxyForce                           // FORCE [ABOVE n]
	proxyWriters                         // WITH DIRECT WRITERS STOPPED
	proxyShard                           // SHARD name
	proxyTLS                             // TLS
	proxyStop                            // WAIT_FOR_CLIENTS | IMMEDIATE
	proxyLike                            // LIKE 'pattern'
)

// proxyForm is one form of a statement to the proxy.
type proxyForm struct {
	verb    ProxyVerb
	words   string // behind SEQPROXY
	options proxyOption
	help    string // what it does, for SHOW SEQPROXY HELP
}

// What may follow SHOW SEQPROXY, and SEQPROXY. Of two forms with the same beginning the longer
// comes first.
var (
	proxyShows = [...]proxyForm{
		{ShowHelp, "HELP", 0, "all statements to the proxy"},
		{ShowVersion, "VERSION", 0, "which program this is, and for how long it has run"},
		{ShowStatus, "STATUS", proxyLike, "what is counted and measured, as /metrics has it"},
		{ShowVariables, "VARIABLES", proxyLike, "the keys of the configuration with the values in force"},
		{ShowSessions, "SESSIONS", 0, "who is connected, what each does, and what keeps it at its server"},
		{ShowNodes, "NODES", 0, "the servers of the shards: whether they answer, and the last error"},
		{ShowShards, "SHARDS", 0, "the shards with their schemas"},
		{ShowPools, "POOLS", 0, "connections to servers, by shard and user"},
		{ShowUsers, "USERS", 0, "who may log in, with which rights and limits"},
		{ShowConfigDiff, "CONFIG DIFF", 0, "what differs between the configuration in force and the file"},
		{ShowConfig, "CONFIG", 0, "the configuration in force, as a file would have it"},
		{ShowSequenceServers, "SEQUENCE SERVERS", 0, "the servers that numbers are reserved from, and the plan"},
	}
	proxyForms = [...]proxyForm{
		{AddSequenceServer, "ADD SEQUENCE SERVER", proxyAddress | proxyWriters, "has one more server give numbers"},
		{RemoveSequenceServer, "REMOVE SEQUENCE SERVER", proxyAddress | proxyForce | proxyWriters, "has a server give numbers no more"},
		{ReloadConfig, "RELOAD", proxyTLS, "reads the configuration again, or only certificates and keys"},
		{PauseShard, "PAUSE", proxyShard, "holds new statements for a shard back, or for all, and lets what runs end"},
		{ResumeShard, "RESUME", proxyShard, "lets them go on"},
		{ShutdownProxy, "SHUTDOWN", proxyStop, "stops the proxy: when no transaction is open, when all clients have left, or at once"},
		{FlushLogs, "FLUSH LOGS", 0, "opens the log file again"},
	}
)

// ProxyStatement describes a form of a statement to the proxy.
type ProxyStatement struct {
	Verb ProxyVerb
	Show bool   // it changes nothing
	Text string // its words and options, as in a manual
	Help string // what it does
}

// ProxyStatements lists all forms, those that change something last.
func ProxyStatements() (all []ProxyStatement) {
	list := func(begin string, show bool, forms []proxyForm) {
		for i := range forms {
			f := &forms[i]
			text := begin + " " + f.words
			if f.options&proxyAddress != 0 {
				text += " 'host:port'"
			}
			for _, o := range proxyOptionTexts {
				if f.options&o.option != 0 {
					text += " [" + o.text + "]"
				}
			}
			all = append(all, ProxyStatement{f.verb, show, text, f.help})
		}
	}
	list("SHOW SEQPROXY", true, proxyShows[:])
	list("SEQPROXY", false, proxyForms[:])
	return all
}

// Proxy reads what follows the word SEQPROXY, or with show what follows SHOW SEQPROXY. The Verb is
// 0 if there is no such statement.
func (r *Reader) Proxy(show bool) *ProxyCommand {
	begin, forms := "SEQPROXY", proxyForms[:]
	if show {
		begin, forms = "SHOW SEQPROXY", proxyShows[:]
	}
	c := &ProxyCommand{Show: show}
	for i := range forms {
		f := &forms[i]
		p, found := r.Lexer, true
		for word := range strings.SplitSeq(f.words, " ") {
			if found = p.Spells(word); !found {
				break
			}
			p.Next()
		}
		if !found {
			continue
		}
		r.Lexer = p
		if problem := r.proxyOptions(f, c); problem != "" {
			r.problem(problem)
			return c
		}
		c.Verb = f.verb
		return c
	}
	allowed := make([]string, len(forms))
	for i := range forms {
		allowed[i] = forms[i].words
	}
	r.problem("what follows " + begin + "; there is " + strings.Join(allowed, ", "))
	return c
}

// proxyOptions reads the options of a form, and returns what is wrong with them.
func (r *Reader) proxyOptions(f *proxyForm, c *ProxyCommand) (problem string) {
	if f.options&proxyAddress != 0 {
		if !r.plainString() {
			return f.words + " needs an address in quotes, as in 'db2.example:3306'"
		}
		c.Address = r.Memory.DecodeName(&r.Lexer)
		r.Next()
	}
	for !r.ended() {
		option := f.options
		switch {
		case option&proxyForce != 0 && r.Spells("force"):
			if c.Force {
				return "FORCE twice"
			}
			problem = r.proxyForce(c)
		case option&proxyWriters != 0 && r.Kw == lex.KwWith:
			if c.WritersStopped {
				return "WITH DIRECT WRITERS twice"
			}
			problem = r.proxyWriters(c)
		case option&proxyLike != 0 && r.Kw == lex.KwLike && !c.HasPattern:
			r.Next()
			if !r.plainString() {
				return "LIKE needs a string"
			}
			c.HasPattern, c.Pattern = true, r.Memory.Decode(&r.Lexer)
			r.Next()
		case option&proxyShard != 0 && r.Spells("shard") && len(c.Shard) == 0:
			problem = r.proxyShard(c)
		case option&proxyTLS != 0 && c.Word == "" && r.Spells("tls"), option&proxyStop != 0 && c.Word == "" && (r.Spells("wait_for_clients") || r.Spells("immediate")):
			c.Word = strings.ToUpper(string(r.Src[r.Start:r.End]))
			r.Next()
		default:
			return f.words + proxyExpected(option)
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

// proxyOptionTexts are the options as in a manual.
var proxyOptionTexts = [...]struct {
	option proxyOption
	text   string
}{
	{proxyLike, "LIKE 'pattern'"},
	{proxyForce, "FORCE [ABOVE n]"},
	{proxyWriters, "WITH DIRECT WRITERS STOPPED"},
	{proxyShard, "SHARD name"},
	{proxyTLS, "TLS"},
	{proxyStop, "WAIT_FOR_CLIENTS | IMMEDIATE"},
}

// proxyExpected lists the options of a form.
func proxyExpected(options proxyOption) string {
	var all []string
	for _, o := range proxyOptionTexts {
		if options&o.option != 0 {
			all = append(all, o.text)
		}
	}
	if len(all) == 0 {
		return ", followed by nothing"
	}
	return ", which may be followed by " + strings.Join(all, ", ")
}

// proxyShard reads the name behind SHARD, the current token.
func (r *Reader) proxyShard(c *ProxyCommand) (problem string) {
	r.Next()
	if r.Kind == lex.Word || r.Kind == lex.Quoted || r.plainString() {
		c.Shard = r.Memory.DecodeName(&r.Lexer)
	}
	if len(c.Shard) == 0 {
		return "SHARD needs the name of a shard"
	}
	r.Next()
	return ""
}

// proxyForce reads FORCE [ABOVE n].
func (r *Reader) proxyForce(c *ProxyCommand) (problem string) {
	c.Force = true
	if r.Next(); r.Spells("above") {
		r.Next()
		n, ok := r.wholeNumber()
		if !ok {
			return "ABOVE" + notWhole
		}
		c.Above = Number{Given: true, Value: n}
	}
	return ""
}

// proxyWriters reads WITH DIRECT WRITERS STOPPED.
func (r *Reader) proxyWriters(c *ProxyCommand) (problem string) {
	for _, word := range [...]string{"direct", "writers", "stopped"} {
		if r.Next(); !r.Spells(word) {
			return "WITH must be followed by DIRECT WRITERS STOPPED"
		}
	}
	c.WritersStopped = true
	r.Next()
	return ""
}

// String returns the command for a log, without its secrets.
func (c *ProxyCommand) String() string {
	begin, forms := "SEQPROXY", proxyForms[:]
	if c.Show {
		begin, forms = "SHOW SEQPROXY", proxyShows[:]
	}
	var b strings.Builder
	b.WriteString(begin)
	for i := range forms {
		if forms[i].verb == c.Verb {
			b.WriteString(" " + forms[i].words)
		}
	}
	for _, o := range [...]struct {
		words string
		text  string
	}{{"", c.Word}, {"SHARD ", string(c.Shard)}, {"", string(c.Address)}} {
		if o.text != "" {
			fmt.Fprintf(&b, " %s%.255s", o.words, o.text)
		}
	}
	if c.Force {
		b.WriteString(" FORCE")
	}
	if c.Above.Given {
		fmt.Fprintf(&b, " ABOVE %d", c.Above.Value)
	}
	if c.WritersStopped {
		b.WriteString(" WITH DIRECT WRITERS STOPPED")
	}
	return b.String()
}
