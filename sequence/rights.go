package sequence

import "slices"

// Right is a privilege that the account of a sequence server needs.
type Right struct {
	Schema, Table string // Table "": on the schema; both "": on the server
	Privilege     string // in the words of SHOW GRANTS
	Need          Need
	For           string // what fails without it
	Exists        bool   // the table is there, so that it can be granted on it
}

// Need says what a missing right costs.
type Need int

// From the least to the most.
const (
	NeedRegistry Need = iota // others do not wait for this proxy
	NeedChanges              // sequences, or the set of servers, cannot be changed
	NeedNumbers              // no numbers are given
)

const (
	forNumbers  = "giving numbers"
	forChanges  = "CREATE, ALTER and DROP SEQUENCE"
	forRegistry = "ALTER SEQUENCE ... RESTART ... FORCE and ... ORDER, which do not wait for proxies that are not registered"
	forServers  = "several sequence servers"
	forAdoption = "an adoption, behind which a group gives numbers"
	forGroup    = "the ceilings of a group"
	forStatus   = "seeing whether a node that can be written to replicates from another"
	forTickets  = "the numbers of a ticket table"
)

// rights are those that the account needs on a node: one more than once, where it is for several things.
func (s *Sequences) rights(v *server, found *ExaminedNode) (all []Right) {
	exists := func(table string) bool {
		return table == v.opts.Table && !found.Missing || slices.Contains(found.Beside, table)
	}
	add := func(need Need, what, table string, privileges ...string) {
		for _, privilege := range privileges {
			all = append(all, Right{Schema: v.opts.Database, Table: table, Privilege: privilege, Need: need, For: what, Exists: exists(table)})
		}
	}
	table := v.opts.Table
	add(NeedNumbers, forNumbers, table, "SELECT", "UPDATE")
	add(NeedChanges, forChanges, table, "INSERT", "DELETE")
	add(NeedNumbers, forNumbers, table+optionsSuffix, "SELECT")
	add(NeedChanges, forChanges, table+optionsSuffix, "INSERT", "UPDATE")
	add(NeedRegistry, forRegistry, table+proxySuffix, "SELECT", "INSERT", "UPDATE", "DELETE")
	several := len(s.opts.Servers) > 1 || found.Membership.Plan != 0
	if several { // each bound; a member that was away
		add(NeedNumbers, forServers, table, "INSERT", "DELETE")
		add(NeedNumbers, forServers, table+optionsSuffix, "INSERT", "UPDATE")
		for _, suffix := range []string{memberSuffix, planSuffix, planStartSuffix} {
			add(NeedNumbers, forServers, table+suffix, "SELECT", "INSERT", "UPDATE", "DELETE")
		}
	}
	if v.grouped() {
		add(NeedNumbers, forGroup, table+guardSuffix, "SELECT", "INSERT", "UPDATE", "DELETE")
		add(NeedNumbers, forAdoption, table, "INSERT") // of what a fail-over has lost
		add(NeedNumbers, forAdoption, table+optionsSuffix, "UPDATE")
		if found.Cluster == "" {
			all = append(all, Right{Privilege: "REPLICATION STATUS", Need: NeedRegistry, For: forStatus})
		}
	}
	switch missing := slices.IndexFunc(v.beside(), func(name string) bool { return !exists(name) }); {
	case found.Missing && s.tuning.Load().CreateTable:
		add(NeedNumbers, "making the tables", "", "CREATE")
	case several && !(exists(table+memberSuffix) && exists(table+planSuffix) && exists(table+planStartSuffix)), v.grouped() && !exists(table+guardSuffix):
		add(NeedNumbers, "making the tables beside the counters", "", "CREATE")
	case missing >= 0:
		add(NeedChanges, "making the tables beside the counters when they are first needed", "", "CREATE")
	}
	if found.Older {
		add(NeedChanges, "adding columns to the table of an older version, once", table+optionsSuffix, "ALTER")
	}
	if v == s.servers.tickets {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range s.ticketTables {
			for _, privilege := range []string{"SELECT", "INSERT", "DELETE"} {
				all = append(all, Right{Schema: t.database, Table: t.name, Privilege: privilege, Need: NeedNumbers, For: forTickets, Exists: t.layout.Load() != nil})
			}
			all = append(all, Right{Schema: t.database, Privilege: "LOCK TABLES", Need: NeedNumbers, For: forTickets})
		}
	}
	return all
}
