package conf

// HTTP is the table [http], for programs that watch the proxy.
type HTTP struct {
	// TCP address of `/metrics`, `/healthz` and `/readyz`; `""` for none, port 0 picks a
	// free one. `-http-listen` overrides it
	Listen string `toml:"listen" reload:"restart"`
}

// check reports the problems of the table.
func (h *HTTP) check(p *checker) {
	if h.Listen == "" {
		return
	}
	if _, err := checkHostPort(h.Listen, 0); err != nil {
		p.add("http.listen", `must be host:port such as "127.0.0.1:4308", or empty, is %q`, h.Listen)
	}
}

// warnHTTP warns of metrics that everybody can read.
func (c *Config) warnHTTP() {
	if host, err := checkHostPort(c.HTTP.Listen, 0); err == nil && !isLoopback(host) {
		c.warn("http.listen: %q lets other machines read names of sequences and users, and addresses of servers", c.HTTP.Listen)
	}
}
