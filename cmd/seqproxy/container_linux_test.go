package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seqproxy/conf"
	"seqproxy/test/mysqltest"
)

// dockerBuild matches the build command of the Dockerfile.
var dockerBuild = regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`)

// dockerTrusts matches what the Dockerfile copies so that certificates can be verified.
var dockerTrusts = regexp.MustCompile(`(?m)^COPY --from=build /etc/ssl/certs/ca-certificates.crt (/\S+)$`)

// dockerCommand returns an instruction of the Dockerfile in exec form, such as ENTRYPOINT.
func dockerCommand(t *testing.T, instruction string) (words []string) {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^`+instruction+` (\[.*\])$`).FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the Dockerfile has %d times %s with a list", len(found), instruction)
	}
	if err := json.Unmarshal(found[0][1], &words); err != nil {
		t.Fatalf("%s: %v", found[0][0], err)
	}
	return words
}

// copyContext copies the files of the repository that .dockerignore does not exclude.
func copyContext(t *testing.T, root, to string) {
	t.Helper()
	text, err := os.ReadFile(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var anchored, anywhere []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch pattern, ok := strings.CutPrefix(line, "**/"); {
		case line == "" || line[0] == '#':
		case ok:
			anywhere = append(anywhere, pattern)
		default:
			anchored = append(anchored, line)
		}
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		matches := func(pattern string) bool {
			ok, err := filepath.Match(pattern, d.Name())
			return ok && err == nil
		}
		if slices.Contains(anchored, filepath.ToSlash(rel)) || slices.ContainsFunc(anywhere, matches) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheContainersProgramIsStaticAndNeedsNothingElse builds the program like the Dockerfile, from
// the files that .dockerignore does not exclude. It runs the program as the container would: as its
// user, with nothing in its root directory but what the Dockerfile copies. Only the volume is
// writable. A CA of the test stands for those that a system trusts.
func TestTheContainersProgramIsStaticAndNeedsNothingElse(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	build := dockerBuild.FindSubmatch(text)
	if build == nil {
		t.Fatal("the Dockerfile builds nothing by CGO_ENABLED=0 go build")
	}
	if recipe := repositoryFile(t, "Makefile"); !strings.Contains(recipe, "\n\tCGO_ENABLED=0 $(GO) build -trimpath ") {
		t.Error("make build does not build the program by CGO_ENABLED=0 go build, as the Dockerfile does, and docs/operations.md says that it is static")
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllSubmatch(text, -1) {
		if bytes.Contains(from[1], []byte("@")) {
			t.Errorf("the image %s is not named by name and version alone", from[1])
		}
	}
	for _, want := range []string{"\nUSER 65532:65532\n", "\nHEALTHCHECK ", "\nVOLUME /var/lib/seqproxy\n", "\nSTOPSIGNAL SIGTERM\n"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
	root, source := t.TempDir(), t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // as a container's
		t.Fatal(err)
	}
	for _, dir := range []string{"/usr/bin", "/etc/seqproxy", "/var/lib/seqproxy"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil { //nolint:gosec // as a container's
			t.Fatal(err)
		}
	}
	ca := mysqltest.NewCA(t)
	trusted := "none"
	if copied := dockerTrusts.FindSubmatch(text); copied != nil {
		trusted = root + string(copied[1])
		pem, err := os.ReadFile(ca.File)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(trusted), 0o755) //nolint:gosec // as a container's
		}
		if err == nil {
			err = os.WriteFile(trusted, pem, 0o644) //nolint:gosec // as a container's
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyContext(t, "../..", source)
	program := root + "/usr/bin/seqproxy"
	compile := exec.Command("sh", "-c", strings.ReplaceAll(string(build[1]), "/out/seqproxy", program))
	compile.Dir = source
	compile.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=abc", "GOFLAGS=")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build[1], err, out)
	}
	binary, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close() //nolint:errcheck // it was read
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program is not static: it has %v", p.Type)
		}
	}

	runtime.LockOSThread() // the kernel sends the signal below when the forking thread ends
	defer runtime.UnlockOSThread()
	const nobody = 65532
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	inside := func(path string) string { return root + path }
	if os.Geteuid() == 0 {
		if err := os.Chown(root+"/var/lib/seqproxy", nobody, nobody); err != nil {
			t.Fatal(err)
		}
		attributes.Chroot, attributes.Credential = root, &syscall.Credential{Uid: nobody, Gid: nobody}
		inside = func(path string) string { return path }
	}
	entry, health := dockerCommand(t, "ENTRYPOINT"), dockerCommand(t, "HEALTHCHECK .* CMD")
	if len(entry) != 1 || health[0] != entry[0] {
		t.Fatalf("the container begins with %q, and its health is %q", entry, health)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(inside(entry[0]), args...)
		cmd.SysProcAttr, cmd.Dir, cmd.Env = attributes, inside("/"), []string{}
		if attributes.Chroot == "" {
			cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+trusted)
		}
		return cmd
	}
	if out, err := run("version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "seqproxy v1.2.3 (commit abc,") {
		if os.Geteuid() == 0 && strings.Contains(strings.ToLower(string(out)+" "+errorText(err)), "not permitted") {
			t.Skipf("this machine does not allow a change of the root: %v", err)
		}
		t.Fatalf("version: %v: %s", err, out)
	}

	s := mysqltest.StartUnsynced(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	s.Exec(t, "CREATE USER 'contained'@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON seqproxy.* TO 'contained'@'%'")
	config := `
listen = "127.0.0.1:0"
admin.listen = ""
http.listen = "127.0.0.1:0"
admin_users = ["app"]
[log]
format = "json"
[[user]]
name = "app"
password = "app's"
[sequence]
state_dir = "` + inside("/var/lib/seqproxy/state") + `"
[[sequence.server]]
address = "` + s.Addr() + `"
user = "contained"
password = "secret"
tls = "VERIFY_IDENTITY"
`
	if err := os.WriteFile(root+"/etc/seqproxy/seqproxy.toml", []byte(config), 0o644); err != nil { //nolint:gosec // of a throw-away server
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log bytes.Buffer
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
	command := dockerCommand(t, "CMD")
	for i, word := range command {
		if strings.HasPrefix(word, "/") {
			command[i] = inside(word)
		}
	}
	proxy := run(command...)
	proxy.Stderr = writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	})
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = proxy.Process.Kill()
			_ = proxy.Wait()
		}
	}()
	listening := regexp.MustCompile(`"event":"listening","address":"([^"]*)".*"http":"([^"]*)"`)
	var addresses []string
	for deadline := time.Now().Add(patience); addresses == nil; time.Sleep(10 * time.Millisecond) {
		if addresses = listening.FindStringSubmatch(said()); addresses == nil && time.Now().After(deadline) {
			t.Fatalf("the program does not listen: %s", said())
		}
	}
	if got := query(t, addresses[1], "app", "app's", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos')", plain(t)...); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
	if !slices.Contains(health, conf.Default().HTTP.Listen) {
		t.Errorf("the health check %q is not at the usual address", health)
	}
	for i, word := range health {
		health[i] = strings.ReplaceAll(word, conf.Default().HTTP.Listen, addresses[2])
	}
	if out, err := run(health[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%q: %v: %s", health, err, out)
	}
	if err := proxy.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = proxy.Wait()
	if ended = true; err != nil {
		t.Errorf("the program ended with %v: %s", err, said())
	}
	if out, err := run(health[1:]...).CombinedOutput(); err == nil {
		t.Errorf("%q without a proxy: %s", health, out)
	}
	if _, err := os.Stat(root + "/var/lib/seqproxy/state/state"); err != nil {
		t.Errorf("the state file: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
