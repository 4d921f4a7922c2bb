package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error lists everything that is wrong with a configuration.
type Error struct {
	File     string   // "" for a configuration without a file
	Problems []string // each names key, value and what is allowed; never empty
}

// Error returns one line per problem. Each begins with the file.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = inFile(e.File, problem)
	}
	return strings.Join(lines, "\n")
}

func inFile(file, problem string) string {
	if file == "" {
		return problem
	}
	return file + ": " + problem
}

// Load reads, completes and validates the file at path. The error is an [*Error], or comes from
// reading the file.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	c, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && worldReadable(info) && c.holdsPassword() {
		c.warn("holds passwords and is readable by everybody; chmod 600 it or use password_file")
	}
	return c, nil
}

// Parse completes and validates the text of a file. Messages contain name, and relative paths in
// the file start in its directory. The error is an [*Error].
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	c.file = name
	written := make(map[string]any)
	meta, err := toml.Decode(string(data), &written)
	if err != nil {
		return nil, &Error{File: name, Problems: []string{syntaxProblem(err)}}
	}
	if _, err := toml.Decode(string(data), c); err != nil {
		return nil, &Error{File: name, Problems: append(unknownKeys(meta.Keys()), typeProblem(err))}
	}
	problems := append(unknownKeys(meta.Keys()), emptyKeys(written, "")...)
	problems = append(problems, c.complete()...)
	problems = append(problems, c.problems()...)
	if len(problems) > 0 {
		return nil, &Error{File: name, Problems: problems}
	}
	c.warnKeys()
	c.warnStateDir()
	return c, nil
}

// complete sets defaults that depend on other keys, and reads every password. It returns the
// problems that it found.
func (c *Config) complete() []string {
	var problems []string
	for i := range c.Users {
		problems = append(problems, c.resolve(userKey(c, i), &c.Users[i].Credential)...)
		problems = append(problems, c.resolveOld(userKey(c, i), &c.Users[i])...)
	}
	for i := range c.Sequence.Servers {
		server := &c.Sequence.Servers[i]
		if server.Database == "" {
			server.Database = c.Sequence.Database
		}
		problems = append(problems, c.resolve(sequenceServerKey(i), &server.Credential)...)
		c.paths(&server.Security)
	}
	for i := range c.Shards {
		problems = append(problems, c.resolve(shardKey(c, i), &c.Shards[i].Credential)...)
		c.paths(&c.Shards[i].Security)
	}
	if c.DefaultShard == "" && len(c.Shards) == 1 {
		c.DefaultShard = c.Shards[0].Name
	}
	c.Sequence.StateDir = c.path(c.Sequence.StateDir)
	problems = append(problems, c.Sequence.resolveWorkerID()...)
	if c.Log.Output != LogStderr {
		c.Log.Output = c.path(c.Log.Output)
	}
	c.TLS.CertFile = c.path(c.TLS.CertFile)
	c.TLS.KeyFile = c.path(c.TLS.KeyFile)
	c.TLS.ClientCAFile = c.path(c.TLS.ClientCAFile)
	return problems
}

// path resolves a relative path against the directory of the file.
func (c *Config) path(path string) string {
	if path == "" || filepath.IsAbs(path) || c.file == "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}

// warn adds a warning.
func (c *Config) warn(format string, args ...any) {
	c.warnings = append(c.warnings, inFile(c.file, fmt.Sprintf(format, args...)))
}

// warnTrust warns of users without a password whom a server may accept because of the proxy's
// system user.
func (c *Config) warnTrust() {
	for i, shard := range c.Shards {
		if shard.User != "" {
			continue
		}
		for _, node := range shard.Nodes {
			network, _ := node.Address.Split()
			if network != "unix" {
				continue
			}
			for j, user := range c.Users {
				if user.Password.IsEmpty() {
					c.warn(`%s: has no password, and %s is reached by a Unix socket, over which a server may trust the proxy's own user; `+
						`unknown_user = "backend" without this user has the server ask for a password`, userKey(c, j), shardKey(c, i))
				}
			}
		}
	}
}

// Warnings returns remarks on a valid configuration, each a line with file and key: on files that
// everybody may read when it was loaded, and on its values as they are now.
func (c *Config) Warnings() []string {
	all := *c
	all.warnings = slices.Clone(c.warnings)
	all.addWarnings()
	return all.warnings
}

// addWarnings adds the warnings about values.
func (c *Config) addWarnings() {
	for _, n := range c.ProxyProtocolFrom {
		if prefix, err := n.Prefix(); err == nil && prefix.Bits() == 0 {
			c.warn("proxy_protocol_from: with %q everybody may claim any address as his own", n)
		}
	}
	c.warnTrust()
	c.warnHTTP()
	c.warnAdmins()
	c.warnOpen("listen", c.Listen, func(string) bool { return true })
	c.warnOpen("admin.listen", c.Admin.Listen, func(user string) bool { return c.IsAdmin(user) || c.IsMonitor(user) })
}

// warnKeys warns of private keys that everybody may read.
func (c *Config) warnKeys() {
	warn := func(key, path string) {
		if info, err := os.Stat(path); err == nil && worldReadable(info) {
			c.warn("%s: %s", key, closeIt(path))
		}
	}
	warn("tls.key_file", c.TLS.KeyFile)
	for i := range c.Sequence.Servers {
		warn(sequenceServerKey(i)+".tls_key_file", c.Sequence.Servers[i].KeyFile)
	}
	for i := range c.Shards {
		warn(shardKey(c, i)+".tls_key_file", c.Shards[i].KeyFile)
	}
}

// warnStateDir warns of a directory that a proxy on this machine could not make. Another machine
// may read the file, too, as for an import.
func (c *Config) warnStateDir() {
	if dir := c.Sequence.StateDir; dir != "" && !mayBeDir(dir) {
		c.warn("sequence.state_dir: no proxy can start on this machine: %s is no directory, and none that can be made in one that exists", dir)
	}
}

// warnOpen warns of users without a password who may log in at an address that other machines can
// reach.
func (c *Config) warnOpen(key, address string, lets func(user string) bool) {
	host, err := checkHostPort(address, 0)
	if err != nil || isLoopback(host) {
		return
	}
	for i, user := range c.Users {
		if user.Password.IsEmpty() && lets(user.Name) {
			c.warn("%s: has no password, and %s %q lets other machines in", userKey(c, i), key, address)
		}
	}
}

// warnAdmins warns of monitors that have more rights than it seems.
func (c *Config) warnAdmins() {
	for _, name := range c.MonitorUsers {
		if c.IsAdmin(name) {
			c.warn("monitor_users: %q is one of admin_users, too, and may change everything", name)
		}
	}
}
