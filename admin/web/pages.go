package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// index is the text of /.
const index = `seqproxy %s

/metrics                   for Prometheus
/healthz                   200 while the process lives
/readyz                    200 if clients should come, else 503 with the reasons
/readyz?sequence=photos    and if this sequence gives numbers now; 404 if there is none of that name
`

// Bounds of the requests answered at the same time. Further ones wait.
const (
	maxReady   = 8 // of /readyz
	maxScrapes = 4 // of /metrics, until the page is made
)

// NewPages returns the handler for a Server. version is the proxy's.
func NewPages(version string, health *Health, metrics prometheus.Gatherer, log *zap.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		plainText(w)
		_, _ = fmt.Fprintf(w, index, version) // the client has gone
	})
	mux.Handle("/metrics", inMemory(maxScrapes, promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog: metricsLog(log),
		// an error in one part does not hide the others
		ErrorHandling: promhttp.ContinueOnError,
	})))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		plainText(w)
		_, _ = io.WriteString(w, "ok\n")
	})
	places := make(chan struct{}, maxReady)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { readyz(w, r, health, places) })
	return readOnly(mux)
}

// readOnly refuses everything but GET and HEAD.
func readOnly(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// inMemory makes a whole page before it sends any of it, a few at the same time. So a client who
// does not read its page keeps no other from one.
func inMemory(most int, pages http.Handler) http.Handler {
	places := make(chan struct{}, most)
	fill := func(p *page, r *http.Request) {
		defer func() { <-places }()
		pages.ServeHTTP(p, r)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		case <-r.Context().Done(): // the client has gone
			return
		}
		p := page{header: w.Header(), status: http.StatusOK}
		fill(&p, r)
		w.WriteHeader(p.status)
		_, _ = w.Write(p.body.Bytes()) // the client has gone
	})
}

// page is an answer in memory.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (p *page) Header() http.Header         { return p.header }
func (p *page) WriteHeader(status int)      { p.status = status }
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }

func plainText(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
}

func readyz(w http.ResponseWriter, r *http.Request, health *Health, places chan struct{}) {
	names := r.URL.Query()["sequence"]
	if len(names) > 1 || len(names) == 1 && names[0] == "" {
		writeReadiness(w, http.StatusBadRequest, &Readiness{Reasons: []string{"name one sequence, as in ?sequence=photos"}, Warnings: []string{}})
		return
	}
	// The answer is for all waiting clients, so it continues when one of them leaves.
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), readyPatience)
	defer stop()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		writeReadiness(w, http.StatusServiceUnavailable, &Readiness{Reasons: []string{"too many ask at the same time"}, Warnings: []string{}})
		return
	}
	if len(names) == 0 {
		readiness := health.Ready(ctx)
		writeReadiness(w, statusOf(readiness), readiness)
		return
	}
	readiness, exists := health.ReadyFor(ctx, names[0])
	if !exists {
		writeReadiness(w, http.StatusNotFound, readiness)
		return
	}
	writeReadiness(w, statusOf(readiness), readiness)
}

func statusOf(r *Readiness) int {
	if r.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func writeReadiness(w http.ResponseWriter, status int, r *Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // the client has gone
}
