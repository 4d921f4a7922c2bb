package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/mysqld"
)

// estate describes the sequence servers.
type estate struct {
	name       string
	servers    int    // members of the plan; 1: no plan
	interleave string // how several divide the numbers
	galera     bool   // the one member is a cluster of three nodes
	replicated int    // the one member is a primary with replicas; this many nodes
}

const galeraNodes = 3

// estates are all that are tried. The first one works wherever a server does.
var estates = []estate{
	{name: "one", servers: 1},
	{name: "block2", servers: 2, interleave: "block"},
	{name: "block3", servers: 3, interleave: "block"},
	{name: "step2", servers: 2, interleave: "step"},
	{name: "step3", servers: 3, interleave: "step"},
	{name: "galera", servers: 1, galera: true},
	{name: "pair", servers: 1, replicated: 2},
	{name: "group", servers: 1, replicated: 3},
}

// Estates returns the possible values of Options.Estate.
func Estates() (names []string) {
	for _, e := range estates {
		names = append(names, e.name)
	}
	return names
}

// chooseEstate returns the estate of that name, or without a name the one that the seed chooses.
// remark says that this machine cannot have it: then it is one server.
func chooseEstate(name string, seed uint64, b mysqld.Binary) (e estate, remark string, err error) {
	i := rand.New(rand.NewPCG(seed, 1)).IntN(len(estates))
	if name != "" {
		if i = slices.Index(Estates(), name); i < 0 {
			return e, "", fmt.Errorf("no estate is named %q: there are %s", name, strings.Join(Estates(), ", "))
		}
	}
	e = estates[i]
	if e.galera && mysqld.GaleraLibrary(b) == "" {
		return estates[0], fmt.Sprintf("NO GALERA CLUSTER: %s has none, or its library is missing (%s names it); one server in its place", b, mysqld.GaleraEnv), nil
	}
	return e, "", nil
}

// remarkOn adds a text to the beginning and end of a run's report.
func (w *world) remarkOn(text string) {
	if w.remark != "" {
		w.remark += "\n"
	}
	w.remark += text
}

func (e estate) String() string {
	switch {
	case e.galera:
		return fmt.Sprintf("a Galera cluster of %d nodes", galeraNodes)
	case e.replicated > 0:
		return fmt.Sprintf("a primary with replicas, %d nodes", e.replicated)
	case e.servers > 1:
		return fmt.Sprintf("%d sequence servers, interleave %s", e.servers, e.interleave)
	}
	return "one sequence server"
}

// stepped reports whether applications count in the tables of several servers, in steps of their
// number.
func (e estate) stepped() bool { return e.name == "step3" }

// directWriters is that setting of the proxies. Without direct writers, they know how far a dead
// member has come.
func (e estate) directWriters() bool { return e.servers == 1 || e.stepped() }

// change is a statement that changes the set of sequence servers.
func (e estate) change(text string) string {
	if e.stepped() {
		text += " WITH DIRECT WRITERS STOPPED"
	}
	return text
}

// plain reports one server that is no group.
func (w *world) plain() bool { return w.unplanned() && len(w.nodes) == 1 }

func (w *world) several() bool   { return len(w.members) > 1 }
func (w *world) unplanned() bool { return len(w.members) == 1 }
func (w *world) galera() bool    { return w.estate.galera }
func (w *world) noGalera() bool  { return !w.estate.galera }
func (w *world) grouped() bool   { return w.group != nil }

// slowRestart reports one server as a group: a proxy has to know its primary for long before a
// sequence may begin again.
func (w *world) slowRestart() bool { return w.unplanned() && len(w.nodes) > 1 }
func (w *world) fastRestart() bool { return w.unplanned() && !w.slowRestart() }

// sequences are the estate's sequences that have a row of the sequence table.
func (w *world) sequences() []string {
	all := slices.Clone(sharedSequences)
	switch {
	case w.estate.interleave == "step":
		return slices.DeleteFunc(all, func(name string) bool { return name == fives || name == snow })
	case w.several():
		return all
	case !w.plain():
		return append(all, restarted)
	}
	return append(slices.Clone(plainSequences), "small", ordered, fives, reversed, rotated, sharded, formatted, numbered, timed, random, snow, days, cachedDays)
}

// possible returns the kinds that work on this estate.
func (w *world) possible(all []*kind) []*kind {
	return slices.DeleteFunc(all, func(k *kind) bool {
		switch {
		case k.direct && k.stepped:
			return !w.estate.stepped()
		case w.plain():
			return false
		case w.estate.interleave == "step" && k.n > 1:
			return true // how far its numbers are apart changes with the number of servers
		}
		return k.direct || !slices.Contains(w.sequences(), k.sequence)
	})
}

// startGalera starts the nodes of a cluster.
func (w *world) startGalera(ctx context.Context, b mysqld.Binary) error {
	nodes, err := mysqld.StartGalera(ctx, b, mysqld.GaleraLibrary(b), filepath.Join(w.dir, "galera"), galeraNodes)
	if err != nil {
		return err
	}
	for i, node := range nodes {
		w.nodes[i].Server = node
	}
	for _, s := range w.nodes {
		s.cluster = nodes
		if err := s.open(); err != nil {
			return err
		}
	}
	w.operator = w.watch()
	return nil
}

// clusterPart stands for all nodes of a cluster: if more than one were away, no majority could
// commit.
const clusterPart part = "cluster"

// parts are what a fault of the server claims.
func (s *server) parts() []part {
	if s.galera {
		return []part{s.part(), clusterPart}
	}
	return []part{s.part()}
}

// suspicions notes when the nodes of a cluster took one of them for dead, with a fault or without:
// a node that does not run for five seconds on a busy machine is expelled, and comes back.
func (w *world) suspicions() (unasked int, err error) {
	for _, s := range w.nodes {
		text, err := os.ReadFile(s.LogFile())
		if err != nil {
			return 0, err
		}
		for _, found := range suspecting.FindAllSubmatch(text, -1) {
			at, err := time.ParseInLocation("2006-01-02 15:04:05", strings.ReplaceAll(string(found[1]), "  ", " 0"), time.Local)
			if err != nil {
				return 0, err
			}
			when := at.Sub(w.clock.start)
			if w.trouble.explains(when-time.Second, when+time.Second, aftermath, clusterPart) == "" {
				unasked++
				w.trouble.note(window{fault: "the cluster expelled a node", parts: []part{clusterPart}, begin: when - 6*time.Second, end: when + 2*time.Second})
			}
		}
	}
	return unasked, nil
}

// 2026-11-22 3:08:54 0 [Note] WSREP: evs::proto(fd890409-80b3, OPERATIONAL,
// view_id(REG,fd5b7ba6-908c,7)) suspecting node: fd5b7ba6-908c
var suspecting = regexp.MustCompile(`(?m)^(\d{4}-\d\d-\d\d [ \d]\d:\d\d:\d\d) .*suspecting node: `)

// back waits until a restarted server takes part, and its cluster is whole.
func (s *server) back(ctx context.Context) error {
	if s.group != nil && s == s.group.primary {
		// Only the group knows who is the primary.
		return s.group.writable(ctx, s, true)
	}
	if !s.galera {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, backWithin)
	defer stop()
	return mysqld.AwaitCluster(ctx, s.cluster)
}

// hurtServer is hurt for a server. A node of a cluster is hurt only while the cluster is whole: a
// second missing node would leave no majority.
func (n *nemesis) hurtServer(ctx context.Context, name string, s *server) (heal func(), err error) {
	if !s.galera {
		return n.hurt(name, s.parts()...)
	}
	release, err := n.claim(s.parts()...)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if mysqld.AwaitCluster(limited, s.cluster) != nil {
		release()
		return nil, errBusy
	}
	w := n.world.trouble.begin(name, s.parts()...)
	return func() {
		n.world.trouble.over(w)
		release()
	}, nil
}
