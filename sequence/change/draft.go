package change

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

// draft makes the plan that the change leads to, and refuses what cannot be done.
func (c *Coordinator) draft(now *Plan) (err error) {
	c.base = now.Number
	if c.plan, err = planFor(now, c.asked, &c.config); err != nil {
		return err
	}
	c.plan.UUID = uuid.NewString()
	for _, m := range c.plan.everyone() {
		at := c.at(m.Address)
		if at.Err == nil {
			at.Report, at.Sequences, err = at.Look(c.ctx)
		} else if err = c.mayMiss(m, at.Err); err == nil {
			c.unasked = m
		}
		if err != nil {
			return err
		}
	}
	err = cmp.Or(c.identify(), c.number())
	for _, m := range c.plan.everyone() {
		err = cmp.Or(err, c.plan.refuseSingles(c.at(m.Address).Sequences))
	}
	return cmp.Or(err, c.plan.checkWriters(c.asked, &c.config))
}

// planFor returns the plan that a change leads to. Its number, and the ids of its members, are
// found when they are asked.
func planFor(now *Plan, asked Change, config *Config) (p Plan, err error) {
	previous := now.Members
	p = Plan{
		Number: now.Number + 1, State: Proposed, Coordinator: config.Host,
		Interleave: now.Interleave, Block: now.Block, Previous: previous,
	}
	if len(previous) == 1 { // which has all numbers, whatever was said before
		if p.Interleave, p.Block = config.Interleave, config.Block; p.Interleave == segment.InSteps {
			p.Block = 0
		}
	}
	p.Members = slices.Clone(previous)
	first, isMember := previous[0].Address, HasAddress(previous, cmp.Or(asked.Add, asked.Remove))
	switch {
	case asked.Add != "" && asked.Force:
		err = define.BadOption("FORCE is for SEQPROXY REMOVE SEQUENCE SERVER: a server is added while all members are there")
	case asked.Add != "" && isMember:
		err = define.BadOption("sequence server %s is a member already", asked.Add)
	case asked.Add != "" && isLocal(first) != isLocal(asked.Add):
		err = define.BadOption("sequence servers %s and %s: one of these addresses is of one machine alone, and all proxies use both: "+
			"name both by addresses that all proxies reach; that of the first stands in the configuration", first, asked.Add)
	case asked.Add != "" && len(previous) >= MaxMembers:
		err = define.BadOption("there are %d sequence servers already, which is the most; remove one first", len(previous))
	case asked.Add != "":
		p.Members = append(p.Members, Member{Address: asked.Add})
	case !isMember:
		err = define.BadOption("sequence server %s is no member; there are %s", asked.Remove, Addresses(previous))
	case len(previous) == 1:
		err = define.BadOption("sequence server %s is the only one; add another one first", asked.Remove)
	case asked.Above > 0 && p.hasCeilings(config):
		err = define.BadOption("ABOVE n is for a server where applications count; the others know how far %s may go: leave ABOVE out", asked.Remove)
	default:
		p.Members = slices.DeleteFunc(p.Members, func(m Member) bool { return m.Address == asked.Remove })
	}
	return p, err
}

// isLocal reports whether an address is one of the same machine: it means another one elsewhere.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	return err != nil || host == "localhost" || ip.IsLoopback() // without a port it is a file
}

// identify enters who the servers say they are.
func (c *Coordinator) identify() error {
	p := &c.plan
	for _, list := range [][]Member{p.Previous, p.Members} {
		for i := range list {
			m := &list[i]
			if m.ID == "" {
				m.ID = c.at(m.Address).ID
			}
			if j := slices.IndexFunc(list, func(o Member) bool { return o.ID == m.ID }); j != i {
				return &Error{
					Finding: fmt.Sprintf("%s and %s are the same sequence server, or one is a copy of the other", list[j].Address, m.Address),
					Remedy:  "on a copy that is to be a server of its own: DELETE FROM " + c.config.Tables.Member,
				}
			}
		}
	}
	return nil
}

// number makes the number of the plan one that no server has seen. A server that comes from
// elsewhere is refused. Whether another change is open Promise finds.
func (c *Coordinator) number() error {
	for _, m := range c.plan.everyone() {
		t := c.at(m.Address)
		if t.Err != nil {
			continue
		}
		old := HasMember(c.plan.Previous, m.ID)
		if old && t.Plan != c.base { // what others gave before that is not among what it gave, or another coordinator was faster
			return &Error{
				Finding: fmt.Sprintf("sequence server %s obeys plan %d, and plan %d is in force", m.Address, t.Plan, c.base),
				Remedy:  "have all members be reached, and say the same again",
			}
		}
		mine := old || len(t.Plans) == 0
		for i := range t.Plans {
			p := &t.Plans[i]
			c.plan.Number = max(c.plan.Number, p.Number+1)
			mine = mine || slices.ContainsFunc(slices.Concat(p.Members, p.Previous), func(o Member) bool { return HasMember(c.plan.Previous, o.ID) })
		}
		if !mine {
			return &Error{
				Finding: fmt.Sprintf("sequence server %s belongs to another set of sequence servers: %s", m.Address, Addresses(t.Plans[len(t.Plans)-1].Members)),
				Remedy:  "remove it there first, and then, if nobody needs the sequences there any more, DROP TABLE " + strings.Join(c.config.Tables.All, ", "),
			}
		}
	}
	return nil
}

// refuseSingles refuses sequences that the members cannot divide: CYCLE, INCREMENT BY n unless n
// divides the numbers of a block, and with steps SNOWFLAKE.
func (p *Plan) refuseSingles(all []Sequence) error {
	const most = 10
	var names []string
	for _, s := range all {
		if share := p.Of(p.Members[0].ID); (s.Cycle || s.Clock && share.InSteps() || !share.Divides(s.Increment)) && len(names) < most {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 || len(p.Members) < 2 {
		return nil
	}
	slices.Sort(names)
	which, drop := "of kind SNOWFLAKE, or with INCREMENT", "DROP those of kind SNOWFLAKE, "
	if p.Interleave == segment.InBlocks {
		drop = ""
		which = fmt.Sprintf("with an INCREMENT that does not divide the %d numbers of a block", p.Block)
	}
	return &Error{
		Finding: "sequences with CYCLE, or " + which + ", need a single sequence server: " + strings.Join(names, ", "),
		Remedy:  "ALTER SEQUENCE ... INCREMENT BY 1 NOCYCLE, " + drop + "or leave them to a proxy of their own",
	}
}

// hasCeilings reports whether a member gives numbers only up to what others have recorded.
// Applications that count in the tables know no such ceiling.
func (p *Plan) hasCeilings(config *Config) bool {
	return p.Interleave == segment.InBlocks || config.NoWriters
}

// checkWriters wants the operator's word that no application counts in the tables meanwhile.
// Where several servers divide the numbers in blocks none can.
func (p *Plan) checkWriters(asked Change, config *Config) error {
	if asked.WritersStopped || config.NoWriters || len(p.Previous) > 1 && p.Interleave == segment.InBlocks {
		return nil
	}
	then := "; for good, since with blocks only proxies can count (interleave = \"step\" lets them go on)"
	if p.Interleave == segment.InSteps || len(p.Members) == 1 {
		then = fmt.Sprintf("; afterwards they may go on, and count by %d", len(p.Members))
	}
	return &Error{
		Finding: fmt.Sprintf("applications may count in the table %s themselves (UPDATE ... LAST_INSERT_ID(id + %d))", config.Tables.First, len(p.Previous)),
		Remedy:  "stop them and say WITH DIRECT WRITERS STOPPED" + then + "; where there are none: direct_writers = false under [sequence]",
	}
}

// mayMiss says what to do about a member that cannot be reached. Only one that is removed may be,
// with the operator's word: of two members the other one may be told to take out this one, and a
// home of an ORDER sequence that lives on gives lower numbers than the others. How far it went is
// known from the ceilings that others have recorded for it, or from the operator's word:
// applications that count in the table itself have none.
func (c *Coordinator) mayMiss(m Member, why error) error {
	ceilings := c.plan.hasCeilings(&c.config)
	e := &Error{Finding: "sequence server " + m.Address + " cannot be reached", Err: why}
	switch {
	case m.Address == c.asked.Add:
		e.Finding = "sequence server " + m.Address + " cannot be added"
	case HasAddress(c.plan.Members, m.Address):
		e.Finding += ", and a change needs all but a removed one"
		e.Remedy = "bring it back, or remove it first"
		if len(c.plan.Previous) == 1 {
			e.Remedy = fmt.Sprintf("bring it back; if it has another address now, stop all proxies, and DELETE FROM %s and %s there", c.config.Tables.Plan, c.config.Tables.Member)
		}
	case c.asked.Force && (ceilings || c.asked.Above > 0):
		return nil
	case ceilings:
		e.Remedy = "bring it back; or make sure that it is off and stays so, and say FORCE"
	default:
		e.Finding = "nobody knows which numbers " + m.Address + " gave, and it cannot be reached"
		e.Remedy = "bring it back; or make sure that it is off and stays so, and say FORCE ABOVE n, a number above all that it can have given" +
			"; or where no application counts in the tables itself: direct_writers = false under [sequence]"
	}
	return e
}
