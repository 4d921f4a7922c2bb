package conf

// checkTickets checks the tables of [[ticket]].
func (c *Config) checkTickets(p *checker) {
	seen := make(map[string]bool)
	for i, ticket := range c.Tickets {
		key := elementKey("ticket", i, ticket.Table)
		schema, table := ticket.Names()
		switch {
		case ticket.Table == "":
			p.add(key+".table", "is missing")
			continue
		case schema == "" && table != c.Sequence.Table:
			p.add(key+".table", "must be schema.table, is %q; only the table of the sequences, %q, may stand alone", ticket.Table, c.Sequence.Table)
			continue
		case schema == "":
			schema = c.ticketSchema()
		}
		checkIdentifier(p, key+".table", schema)
		checkIdentifier(p, key+".table", table)
		if seen[schema+"."+table] {
			p.add(key+".table", "must be given once, is there twice")
		}
		seen[schema+"."+table] = true
	}
}

// ticketSchema returns the schema of the sequence table.
func (c *Config) ticketSchema() string {
	for _, server := range c.Sequence.Servers {
		if server.Database != "" {
			return server.Database
		}
	}
	return c.Sequence.Database
}

// IsSequenceTable says whether the table is the sequence table. An empty schema means that table's
// schema.
func (c *Config) IsSequenceTable(schema, table string) bool {
	return (schema == "" || schema == c.ticketSchema()) && table == c.Sequence.Table
}
