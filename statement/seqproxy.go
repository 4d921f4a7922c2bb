package statement

import (
	"fmt"
	"strings"

	"seqproxy/statement/lex"
)

// Statements to the proxy itself stand behind one reserved word, which no server knows:
// SEQPROXY ..., and SHOW SEQPROXY ... for what answers with rows. So none of them is ever
// taken for a server's, and what begins so and is not among them is a Problem that lists
// what there is.

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

// ProxyCommand is what a statement of kind Seqproxy asks for. Verb is 0 if there is a Problem
// with its words.
type ProxyCommand struct {
	Verb ProxyVerb
	// Show is set for SHOW SEQPROXY, which changes nothing.
	Show bool
	// Address is the 'host:port' of ADD and REMOVE, decoded, in the client's character
	// set; valid as long as FuncCall.Name.
	Address []byte
	// Pattern is that of LIKE, decoded as Address is.
	HasPattern bool
	Pattern    []byte
	// Force is FORCE, which ABOVE n may follow.
	Force bool
	Above SequenceNumber
	// WritersStopped is WITH DIRECT WRITERS STOPPED: the operator's word that nobody but
	// seqproxy counts in the tables.
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

// What can stand behind SHOW SEQPROXY, and behind SEQPROXY. Of forms that begin alike the
// longer stands first.
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
		{AddSequenceServer, "ADD SEQUENCE SERVER", proxyAddress | proxyForce | proxyWriters, "has one more server give numbers"},
		{RemoveSequenceServer, "REMOVE SEQUENCE SERVER", proxyAddress | proxyForce | proxyWriters, "has a server give numbers no more"},
		{ReloadConfig, "RELOAD", proxyTLS, "reads the configuration again, or only certificates and keys"},
		{PauseShard, "PAUSE", proxyShard, "holds new statements for a shard back, or for all, and lets what runs end"},
		{ResumeShard, "RESUME", proxyShard, "lets them go on"},
		{ShutdownProxy, "SHUTDOWN", proxyStop, "stops the proxy: when no transaction is open, when all clients have left, or at once"},
		{FlushLogs, "FLUSH LOGS", 0, "opens the log file again"},
	}
)

// ProxyStatement is a form of a statement to the proxy.
type ProxyStatement struct {
	Verb ProxyVerb
	Show bool   // it changes nothing
	Text string // its words, with what may follow as in a manual
	Help string // what it does
}

// ProxyStatements lists all of them, those that change something last.
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

// proxyStatement reads what follows the word SEQPROXY, the current token.
func (a *analyzer) proxyStatement(begin string, forms []proxyForm) bool {
	a.aboutSequence(Seqproxy)
	a.st.Proxy = &ProxyCommand{Show: begin != "SEQPROXY"}
	for i := range forms {
		f := &forms[i]
		p, found := a.Lexer, true
		for word := range strings.SplitSeq(f.words, " ") {
			if found = p.Kind == lex.Word && strings.EqualFold(string(p.Src[p.Start:p.End]), word); !found {
				break
			}
			p.Next()
		}
		if !found {
			continue
		}
		a.Lexer = p
		if problem := a.proxyOptions(f); problem != "" {
			return a.sequenceProblem(problem)
		}
		a.st.Proxy.Verb = f.verb
		return a.sequenceEnd()
	}
	known := make([]string, len(forms))
	for i := range forms {
		known[i] = forms[i].words
	}
	return a.sequenceProblem("what follows " + begin + "; there is " + strings.Join(known, ", "))
}

// proxyOptions reads what follows the words of a form, and returns what is wrong with it.
func (a *analyzer) proxyOptions(f *proxyForm) (problem string) {
	c := a.st.Proxy
	if f.options&proxyAddress != 0 {
		if !a.plainString() {
			return f.words + " needs an address in quotes, as in 'db2.example:3306'"
		}
		c.Address = a.st.arena.DecodeName(&a.Lexer)
		a.advance()
	}
	for !a.ended() {
		option := f.options
		switch {
		case option&proxyForce != 0 && a.word("force"):
			if c.Force {
				return "FORCE twice"
			}
			problem = a.proxyForce()
		case option&proxyWriters != 0 && a.Kw == lex.KwWith:
			if c.WritersStopped {
				return "WITH DIRECT WRITERS twice"
			}
			problem = a.proxyWriters()
		case option&proxyLike != 0 && a.Kw == lex.KwLike && !c.HasPattern:
			a.advance()
			if !a.plainString() {
				return "LIKE needs a string"
			}
			c.HasPattern, c.Pattern = true, a.st.arena.Decode(&a.Lexer)
			a.advance()
		case option&proxyShard != 0 && a.word("shard") && len(c.Shard) == 0:
			problem = a.proxyShard()
		case option&proxyTLS != 0 && c.Word == "" && a.word("tls"), option&proxyStop != 0 && c.Word == "" && (a.word("wait_for_clients") || a.word("immediate")):
			c.Word = strings.ToUpper(string(a.Src[a.Start:a.End]))
			a.advance()
		default:
			return f.words + a.proxyExpected(option)
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

// proxyOptionTexts are the options as a manual has them.
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
func (a *analyzer) proxyExpected(options proxyOption) string {
	var all []string
	for _, o := range proxyOptionTexts {
		if options&o.option != 0 {
			all = append(all, o.text)
		}
	}
	if len(all) == 0 {
		return ", behind which nothing may follow"
	}
	return ", behind which may follow " + strings.Join(all, ", ")
}

// proxyShard reads the name behind SHARD, the current token.
func (a *analyzer) proxyShard() (problem string) {
	a.advance()
	if a.Kind == lex.Word || a.Kind == lex.Quoted || a.plainString() {
		a.st.Proxy.Shard = a.st.arena.DecodeName(&a.Lexer)
	}
	if len(a.st.Proxy.Shard) == 0 {
		return "SHARD needs the name of a shard"
	}
	a.advance()
	return ""
}

// proxyForce reads FORCE [ABOVE n].
func (a *analyzer) proxyForce() (problem string) {
	c := a.st.Proxy
	c.Force = true
	if a.advance(); a.word("above") {
		return a.proxyNumber("ABOVE", &c.Above)
	}
	return ""
}

// proxyWriters reads WITH DIRECT WRITERS STOPPED.
func (a *analyzer) proxyWriters() (problem string) {
	for _, word := range [...]string{"direct", "writers", "stopped"} {
		if a.advance(); !a.word(word) {
			return "WITH, behind which DIRECT WRITERS STOPPED may follow"
		}
	}
	a.st.Proxy.WritersStopped = true
	a.advance()
	return ""
}

// String writes the command without what may be nobody's to know, for a log.
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

// proxyNumber reads the number behind an option, the current token.
func (a *analyzer) proxyNumber(option string, to *SequenceNumber) (problem string) {
	a.advance()
	n, ok := uint64(0), false
	if a.Kind == lex.Number {
		n, ok = lex.ParseUint(a.Src[a.Start:a.End])
	}
	if !ok {
		return option + " needs a whole number"
	}
	*to = SequenceNumber{Given: true, Value: n}
	a.advance()
	return ""
}
