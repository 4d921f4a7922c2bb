package session

import (
	"context"
	"errors"
	"os"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// Session is one client's connection and its state. Only its goroutine touches it, except for what
// other goroutines do under mu.
type Session struct {
	srv  Server
	doom kill.Doom // why another goroutine ends the session

	client  client
	login   login.Login
	state   state.State
	numbers keys.Taker // takes the numbers of sequences
	kills   kill.Kills // the KILLs of its client
	idle    idleness
	tally   stats.Tally

	prepared preparedSet

	attachment // its connections to servers
	relay      // passes commands and answers on
	ground     ground
	failures   // answers commands with errors
	planning   // decides what becomes of commands
	answers    // makes the proxy's own answers
	tickets
	delivery // sends texts
	texts    // distinguishes texts
	executor // runs prepared statements
}

// New makes the session of a client that has connected. It ends with ctx. The caller drops it if it
// is not served.
func New(ctx context.Context, srv Server, shared *Shared, conn *protocol.Conn, atAdmin bool) *Session {
	set := shared.Settings.Load()
	s := &Session{srv: srv, client: client{Conn: conn}}
	s.connected = stats.Clock()
	s.login = login.New(s, conn, &shared.Gate, atAdmin)
	s.connect(ctx, shared, set)
	s.numbers.For(s.ctx, &s.planning.facts, &s.tally)
	s.use(set)
	s.kills = kill.NewKills(s.ctx, s, srv, shared.Killer)
	s.tally = stats.NewTally(&s.mu, s.connected)
	return s
}

// use makes a session obey settings. Their routes are another matter: see follow.
func (s *Session) use(set *Settings) {
	s.set = set
	s.numbers.From(set.numbers, set.right, set.multiRowFirst)
}

// connect connects the parts of a session with each other.
func (s *Session) connect(ctx context.Context, shared *Shared, set *Settings) {
	a, r := &s.attachment, &s.relay
	a.shared, a.above, a.patience, a.routes = shared, s, &s.numbers.Patience, set.routesFor(s.login.AtAdmin)
	a.client, a.login, a.state, a.tally, a.prepared, a.doom = &s.client, &s.login, &s.state, &s.tally, &s.prepared, &s.doom
	a.ctx, a.cancel = context.WithCancel(ctx)
	s.idle.at = a

	r.at, r.numbers, r.batch.client = a, &s.numbers, s.client.Conn
	r.slow.at = a
	r.share.at = a

	s.ground = ground{at: a, relay: r, client: &s.client, state: &s.state, numbers: &s.numbers}
	s.failures.ground = &s.ground
	s.planning.facts.ground = &s.ground
	s.answers = answers{ground: &s.ground, planning: &s.planning}
	s.tickets = tickets{ground: &s.ground, planning: &s.planning, answers: &s.answers}
	s.delivery = delivery{ground: &s.ground, planning: &s.planning, answers: &s.answers}
	s.texts = texts{ground: &s.ground, planning: &s.planning, answers: &s.answers, tickets: &s.tickets, delivery: &s.delivery, kills: &s.kills}
	s.executor = executor{
		ground: &s.ground, planning: &s.planning, answers: &s.answers, tickets: &s.tickets, delivery: &s.delivery, texts: &s.texts,
	}
}

// Serve runs one client from greeting to close. It owns the client's connection and every backend
// connection, and closes them in any case.
func (s *Session) Serve() {
	defer s.cancel()
	defer s.client.Close()
	defer s.share.give()
	defer s.client.Drop()
	defer s.closeBackends()

	err := s.logIn()
	if err == nil {
		if err = s.commands(); errors.Is(err, errShutdown) {
			s.refuseLateCommand()
		}
		s.slow.round(stats.Clock())
	}
	s.countEnd(err)
	s.logEnd(err)
}

// commands is the loop from command to answer.
func (s *Session) commands() error {
	s.tally.Start(s.serial, stats.Clock())
	for {
		payload, ok, err := s.batch.next()
		if err != nil {
			return s.outOfOrder(0)
		}
		if !ok {
			// All bytes were handled: get the answers, then wait.
			if s.share.bytes > 0 {
				s.share.relayed = true
				s.batch.payload = nil
				s.trim()
			}
			if s.batch.size > 0 {
				if err := s.settle(); err != nil {
					return err
				}
			}
			if err := s.await(); err != nil {
				return err
			}
			continue
		}
		s.client.packetNum = 1
		if err := s.beginCommand(payload); err != nil {
			return err
		}
		err = s.command(payload)
		s.tally.Handled(err)
		if err != nil {
			return err
		}
		if s.batch.size > 0 { // the command waits in the batch
			continue
		}
		s.batch.drop()
		if s.share.bytes > 0 {
			s.trim()
			s.batch.payload = nil
			s.share.give()
		}
		if len(s.client.out) > maxWaiting {
			if err := s.client.flush(); err != nil {
				return err
			}
		}
	}
}

// beginCommand begins a command: it forgets the one before, and takes the present settings. payload
// is nil if the command is not in memory as a whole. An error ends the session.
func (s *Session) beginCommand(payload []byte) error {
	s.batch.payload = payload
	if now := s.shared.Settings.Load(); s.set != now || s.routes != now.Routes && !s.login.AtAdmin {
		if err := s.renew(now); err != nil {
			return s.failed(err)
		}
	}
	s.entered, s.unreached, s.explained, s.effect = nil, false, false, state.Effect{}
	s.numbers.Patience.Spent, s.numbers.Pending = 0, ""
	return nil
}

// command handles one command, given as its payload: it puts it into the batch, or answers it. It
// returns only an error that ends the session. Others go to the client.
func (s *Session) command(payload []byte) error {
	var cmd protocol.Command // 0 is unknown to servers, too
	if len(payload) > 0 {
		cmd = protocol.Command(payload[0])
	}
	var err error
	switch cmd {
	case protocol.ComQuery:
		err = s.query(payload[1:])
	case protocol.ComStmtExecute:
		err = s.execute(payload)
	case protocol.ComStmtClose, protocol.ComStmtReset, protocol.ComStmtLongData, protocol.ComStmtFetch:
		err = s.onPrepared(cmd, payload)
	case protocol.ComPing:
		err = s.ping()
	case protocol.ComChangeUser:
		return s.changeUser(payload) // each of its errors ends the session
	default:
		if err = s.settle(); err == nil {
			err = s.alone(cmd, payload)
		}
	}
	if err != nil {
		err = s.answerError(err)
	}
	return err
}

// ping answers COM_PING. A pool takes a connection whose ping is not answered in a pause for a dead
// one.
func (s *Session) ping() error {
	s.state.Pinged()
	if s.cur != nil && (s.batch.size > 0 || !paused(s.cur.Shard) || s.state.InTransaction()) {
		return s.relayCommand(protocol.ShapeOne)
	}
	if err := s.settle(); err != nil {
		return err
	}
	s.reply(protocol.OK{})
	return nil
}

// alone handles a command outside of a batch. Nothing is in flight.
func (s *Session) alone(cmd protocol.Command, payload []byte) error {
	switch cmd {
	case protocol.ComStmtBulkExecute:
		return s.executeBulk(payload)
	case protocol.ComStmtPrepare:
		return s.prepare(payload[1:])
	case protocol.ComInitDB:
		return s.useSchema(string(payload[1:]), nil, true)
	case protocol.ComSetOption:
		return s.setOption(payload)
	case protocol.ComResetConn:
		return s.resetConnection()
	case protocol.ComQuit:
		return errQuit
	case protocol.ComCreateDB, protocol.ComDropDB:
		return s.onSchema(string(payload[1:]))
	case protocol.ComStatistics: // which leaves everything as it is
		if s.routes.Default == nil {
			return s.statistics()
		}
		return s.relayAlone(cmd.AnswerShape())
	case protocol.ComFieldList, protocol.ComProcessInfo, protocol.ComRefresh, protocol.ComDebug, protocol.ComShutdown:
		s.state.LastAnswer = state.ByServer
		return s.relayAlone(cmd.AnswerShape())
	case protocol.ComProcessKill:
		return s.processKill(payload)
	case protocol.ComRegisterSlave:
		return s.relayAlone(protocol.ShapeOne)
	case protocol.ComBinlogDump, protocol.ComBinlogDumpGTID, protocol.ComTableDump:
		return s.handOver()
	}
	return unknownCommand()
}

// setOption relays COM_SET_OPTION and keeps it for other shards.
func (s *Session) setOption(payload []byte) error {
	option := make([]byte, 2) // as servers read it: MariaDB puts a zero behind what is shorter
	copy(option, payload[1:])
	if s.routes.Default == nil {
		s.reply(protocol.OK{})
		return nil
	}
	if err := s.relayAlone(protocol.ShapeOne); err != nil {
		return err
	}
	if s.cur != nil && s.cur.Answer.ErrCode == 0 {
		s.state.Option = option
	}
	return nil
}

// await waits until more of the client's bytes are there. It also handles a command that is too
// long for the buffer.
func (s *Session) await() error {
	if err := s.client.flush(); err != nil {
		return err
	}
	if s.leaves() {
		return errShutdown
	}
	s.trim()
	if b := s.client.Buffered(); len(b) > protocol.BufferSize/2 {
		if err := s.beginCommand(nil); err != nil {
			return err
		}
		if handled, err := s.longCommand(b); handled || err != nil {
			s.tally.Handled(err)
			return err
		}
		if size := protocol.PayloadLen(b); size > largeStatement {
			s.slow.round(stats.Clock())
			return s.takeIn(size)
		}
	}
	now := stats.Clock()
	s.slow.round(now)
	if err := s.idle.beforeWait(now); err != nil {
		return err
	}
	s.tally.Settle(&s.shared.Mu, &s.shared.Totals)
	look, err := s.beginWait(now)
	if err == nil && !look {
		err = s.client.fill()
		if err != nil && s.leaves() {
			return errShutdown
		}
		if look, err = s.endWait(err); err != nil {
			err = s.idle.afterWait(err)
		}
	}
	if err == nil && look {
		return s.dropClosed()
	}
	return err
}

// takeIn reads a large command with size bytes of payload. If its wait for memory was ended, it
// skips the command and answers with the reason.
func (s *Session) takeIn(size int) error {
	err := s.share.takeIn(size)
	var refused *protocol.ServerError
	if !errors.As(err, &refused) {
		return err
	}
	s.tally.Kind, s.unreached = stats.KindHere, true
	if err = s.skipCommand(); err == nil {
		err = s.failed(refused)
	}
	s.tally.Handled(err)
	return err
}

// beginWait begins the wait for a command. A shutdown or the end of a backend connection may end
// the wait. If a shutdown has already come, beginWait returns an error. If a connection may have
// ended, look says that the caller must look first.
func (s *Session) beginWait(now time.Duration) (look bool, err error) {
	at := stats.Standing{Schema: s.state.Schema, Pins: s.state.AllPins()}
	if s.cur != nil {
		at.Shard = s.cur.Shard
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.ReportLocked(now, s.client.Conn, at, &s.shared.Counters.Overheads)
	if s.backendClosed {
		s.backendClosed = false
		return true, nil
	}
	s.busy, s.resting, s.transacting = false, true, s.state.InTransaction()
	if s.engaged.Load().Many() {
		s.narrowEngaged()
	}
	if s.leaves() {
		return false, errShutdown
	}
	return false, nil
}

// endWait ends the wait. err is how the wait ended, and what it returns ends the session. look says
// that the caller must look for closed backend connections. It removes the deadline that ended the
// wait, since the rest of a command needs more reads.
func (s *Session) endWait(err error) (look bool, _ error) {
	now := stats.Clock()
	s.tally.Begins(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.resting, s.tally.Report.Since = true, false, now
	switch {
	case !s.Drains() && !s.backendClosed:
		return false, err
	case err == nil:
		return false, s.client.until(time.Time{})
	case s.leaves() || !errors.Is(err, os.ErrDeadlineExceeded):
		return false, err
	}
	look = s.backendClosed
	s.backendClosed, s.idle.woken = false, true
	return look, s.client.until(time.Time{})
}

// Drains reports whether the sessions at this one's address should end when they can.
func (s *Session) Drains() bool {
	if s.login.AtAdmin {
		return s.shared.AdminEnds.Load()
	}
	return s.shared.Draining.Load()
}

// leaves reports whether the session ends now: the server drains, and no transaction is open.
func (s *Session) leaves() bool { return s.Drains() && !s.state.InTransaction() }

// trim frees the memory of an unusually large command, before a wait.
func (s *Session) trim() {
	s.planning.trim()
	if cap(s.scratch) > maxKept {
		s.scratch = nil
	}
}

// dropTallies adds to the totals the counts of shards that the session no longer uses.
func (s *Session) dropTallies() {
	s.tally.Drop(func(shard *backend.Shard) bool { return s.conns[shard] == nil && !s.routes.Has(shard) }, &s.shared.Mu, &s.shared.Totals)
}
