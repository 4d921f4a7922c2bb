package statement

import (
	"fmt"
	"strings"
)

// Statements to the proxy itself stand behind one reserved word, which no server knows:
// SEQPROXY ..., and SHOW SEQPROXY ... for what answers with rows. So none of them is ever
// taken for a server's, and what begins so and is not among them is a Problem that lists
// what there is.

// ProxyVerb says what a ProxyCommand asks for.
type ProxyVerb uint8

// The verbs.
const (
	ShowSequenceServers   ProxyVerb = iota + 1 // SHOW SEQPROXY SEQUENCE SERVERS
	AddSequenceServer                          // SEQPROXY ADD SEQUENCE SERVER 'host:port'
	RemoveSequenceServer                       // SEQPROXY REMOVE SEQUENCE SERVER 'host:port'
	ChangeSequenceServers                      // SEQPROXY CHANGE SEQUENCE SERVERS [INTERLEAVE block|step] [BLOCK n]
	ResumePlan                                 // SEQPROXY RESUME PLAN
	AbortPlan                                  // SEQPROXY ABORT PLAN
	ReloadConfig                               // SEQPROXY RELOAD [TLS]
	PauseShard                                 // SEQPROXY PAUSE [SHARD s]
	ResumeShard                                // SEQPROXY RESUME [SHARD s]
	ShutdownProxy                              // SEQPROXY SHUTDOWN [WAIT_FOR_CLIENTS | IMMEDIATE]
	FlushLogs                                  // SEQPROXY FLUSH LOGS
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
	// Interleave is the word behind INTERLEAVE in lower case, "block" or "step", or "".
	Interleave string
	// Block is the number behind BLOCK.
	Block SequenceNumber
	// Force is FORCE, with at most one of ABOVE n and MARGIN n.
	Force         bool
	Above, Margin SequenceNumber
	// WritersStopped is WITH DIRECT WRITERS STOPPED, WritersStep the number of WITH DIRECT
	// WRITERS STEP n: the operator's word for what those do that count in the table themselves.
	WritersStopped bool
	WritersStep    SequenceNumber
	// Shard is the name behind SHARD, decoded as Address is; empty: all shards.
	Shard []byte
	// Word is the one word that stands behind RELOAD or SHUTDOWN, in upper case, or "".
	Word string
}

// proxyOption is a set of what may follow the words of a proxyForm.
type proxyOption uint8

const (
	proxyAddress    proxyOption = 1 << iota // 'host:port', which is required
	proxyInterleave                         // INTERLEAVE block|step, BLOCK n; at least one
	proxyForce                              // FORCE [ABOVE n | MARGIN n]
	proxyWriters                            // WITH DIRECT WRITERS STOPPED | STEP n
	proxyShard                              // SHARD name
	proxyTLS                                // TLS
	proxyStop                               // WAIT_FOR_CLIENTS | IMMEDIATE
)

// proxyForm is one form of a statement to the proxy.
type proxyForm struct {
	verb    ProxyVerb
	words   string // behind SEQPROXY
	options proxyOption
}

// What can stand behind SHOW SEQPROXY, and behind SEQPROXY.
var (
	proxyShows = [...]proxyForm{
		{ShowSequenceServers, "SEQUENCE SERVERS", 0},
	}
	proxyForms = [...]proxyForm{
		{AddSequenceServer, "ADD SEQUENCE SERVER", proxyAddress | proxyForce | proxyWriters},
		{RemoveSequenceServer, "REMOVE SEQUENCE SERVER", proxyAddress | proxyForce | proxyWriters},
		{ChangeSequenceServers, "CHANGE SEQUENCE SERVERS", proxyInterleave | proxyForce | proxyWriters},
		{ResumePlan, "RESUME PLAN", 0},
		{AbortPlan, "ABORT PLAN", 0},
		{ReloadConfig, "RELOAD", proxyTLS},
		{PauseShard, "PAUSE", proxyShard},
		{ResumeShard, "RESUME", proxyShard}, // behind RESUME PLAN, which begins with it
		{ShutdownProxy, "SHUTDOWN", proxyStop},
		{FlushLogs, "FLUSH LOGS", 0},
	}
)

// proxyStatement reads what follows the word SEQPROXY, the current token.
func (a *analyzer) proxyStatement(begin string, forms []proxyForm) bool {
	a.aboutSequence(Seqproxy)
	a.st.Proxy = &ProxyCommand{Show: begin != "SEQPROXY"}
	for i := range forms {
		f := &forms[i]
		p, found := a.lexer, true
		for word := range strings.SplitSeq(f.words, " ") {
			if found = p.kind == tWord && strings.EqualFold(string(p.src[p.start:p.end]), word); !found {
				break
			}
			p.next()
		}
		if !found {
			continue
		}
		a.lexer = p
		if problem := a.proxyOptions(f); problem != "" {
			return a.sequenceProblem(problem)
		}
		a.st.Proxy.Verb = f.verb
		return a.sequenceEnd()
	}
	known := make([]string, len(forms))
	for i := range forms {
		known[i] = begin + " " + forms[i].words
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
		c.Address = a.st.decode(a.lexer)
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
		case option&proxyWriters != 0 && a.kw == kwWith:
			if c.WritersStopped || c.WritersStep.Given {
				return "WITH DIRECT WRITERS twice"
			}
			problem = a.proxyWriters()
		case option&proxyInterleave != 0 && a.word("interleave") && c.Interleave == "":
			a.advance()
			switch {
			case a.word("block"):
				c.Interleave = "block"
			case a.word("step"):
				c.Interleave = "step"
			default:
				return "INTERLEAVE, which is BLOCK or STEP"
			}
			a.advance()
		case option&proxyInterleave != 0 && a.word("block") && !c.Block.Given:
			problem = a.proxyNumber("BLOCK", &c.Block)
		case option&proxyShard != 0 && a.word("shard") && len(c.Shard) == 0:
			problem = a.proxyShard()
		case option&proxyTLS != 0 && c.Word == "" && a.word("tls"), option&proxyStop != 0 && c.Word == "" && (a.word("wait_for_clients") || a.word("immediate")):
			c.Word = strings.ToUpper(string(a.src[a.start:a.end]))
			a.advance()
		default:
			return f.words + a.proxyExpected(option)
		}
		if problem != "" {
			return problem
		}
	}
	if f.options&proxyInterleave != 0 && c.Interleave == "" && !c.Block.Given {
		return f.words + a.proxyExpected(f.options)
	}
	return ""
}

// proxyExpected lists the options of a form.
func (a *analyzer) proxyExpected(options proxyOption) string {
	var all []string
	for _, o := range [...]struct {
		option proxyOption
		text   string
	}{
		{proxyInterleave, "INTERLEAVE BLOCK | STEP"},
		{proxyInterleave, "BLOCK n"},
		{proxyForce, "FORCE [ABOVE n | MARGIN n]"},
		{proxyWriters, "WITH DIRECT WRITERS STOPPED | STEP n"},
		{proxyShard, "SHARD name"},
		{proxyTLS, "TLS"},
		{proxyStop, "WAIT_FOR_CLIENTS | IMMEDIATE"},
	} {
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
	if a.kind == tWord || a.kind == tQuoted || a.plainString() {
		a.st.Proxy.Shard = a.st.decode(a.lexer)
	}
	if len(a.st.Proxy.Shard) == 0 {
		return "SHARD needs the name of a shard"
	}
	a.advance()
	return ""
}

// proxyForce reads FORCE [ABOVE n | MARGIN n].
func (a *analyzer) proxyForce() (problem string) {
	c := a.st.Proxy
	c.Force = true
	switch a.advance(); {
	case a.word("above"):
		return a.proxyNumber("ABOVE", &c.Above)
	case a.word("margin"):
		return a.proxyNumber("MARGIN", &c.Margin)
	}
	return ""
}

// proxyWriters reads WITH DIRECT WRITERS STOPPED | STEP n.
func (a *analyzer) proxyWriters() (problem string) {
	const want = "WITH, behind which DIRECT WRITERS STOPPED or DIRECT WRITERS STEP n may follow"
	c := a.st.Proxy
	for _, word := range [...]string{"direct", "writers"} {
		if a.advance(); !a.word(word) {
			return want
		}
	}
	switch a.advance(); {
	case a.word("stopped"):
		c.WritersStopped = true
		a.advance()
		return ""
	case a.word("step"):
		return a.proxyNumber("STEP", &c.WritersStep)
	}
	return want
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
	if c.Interleave != "" {
		b.WriteString(" INTERLEAVE " + c.Interleave)
	}
	if c.Force {
		b.WriteString(" FORCE")
	}
	if c.WritersStopped {
		b.WriteString(" WITH DIRECT WRITERS STOPPED")
	}
	for _, o := range [...]struct {
		words  string
		number SequenceNumber
	}{{"BLOCK", c.Block}, {"ABOVE", c.Above}, {"MARGIN", c.Margin}, {"WITH DIRECT WRITERS STEP", c.WritersStep}} {
		if o.number.Given {
			fmt.Fprintf(&b, " %s %d", o.words, o.number.Value)
		}
	}
	return b.String()
}

// proxyNumber reads the number behind an option, the current token.
func (a *analyzer) proxyNumber(option string, to *SequenceNumber) (problem string) {
	a.advance()
	n, ok := uint64(0), false
	if a.kind == tNumber {
		n, ok = parseUint(a.src[a.start:a.end])
	}
	if !ok {
		return option + " needs a whole number"
	}
	*to = SequenceNumber{Given: true, Value: n}
	a.advance()
	return ""
}
