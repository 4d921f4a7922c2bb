package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"seqproxy/test/mysqltest"
)

// inSandbox is the environment variable that names a file. The file lists the system calls that the
// program may use.
const inSandbox = "SEQPROXY_TEST_SANDBOX"

func init() { sandboxed = enterSandbox }

// BPF instructions of a filter of system calls, and the offsets of its data.
const (
	bpfLoad, bpfEqual, bpfAnySet, bpfReturn = 0x20, 0x15, 0x45, 0x06
	seccompNumber, seccompArg0, seccompArg2 = 0, 16, 32
	seccompAllow, seccompErrno              = 0x7fff0000, 0x00050000
)

// enterSandbox puts the process under the filters that systemd makes of SystemCallFilter,
// RestrictAddressFamilies, RestrictNamespaces and MemoryDenyWriteExecute. Then it starts the
// program again.
func enterSandbox() {
	file := os.Getenv(inSandbox)
	if file == "" {
		return
	}
	if err := os.Unsetenv(inSandbox); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	load := func(at uint32) unix.SockFilter { return unix.SockFilter{Code: bpfLoad, K: at} }
	refuse := func(e syscall.Errno) unix.SockFilter {
		return unix.SockFilter{Code: bpfReturn, K: seccompErrno | uint32(e)}
	}
	allow := unix.SockFilter{Code: bpfReturn, K: seccompAllow}
	filter := []unix.SockFilter{load(seccompNumber)}
	// only applies the further instructions to one system call.
	only := func(number uint32, asks ...unix.SockFilter) {
		filter = append(filter, unix.SockFilter{Code: bpfEqual, Jf: uint8(len(asks)), K: number})
		filter = append(filter, asks...)
	}
	only(unix.SYS_SOCKET, load(seccompArg0),
		unix.SockFilter{Code: bpfEqual, Jt: 3, K: unix.AF_UNIX}, unix.SockFilter{Code: bpfEqual, Jt: 2, K: unix.AF_INET},
		unix.SockFilter{Code: bpfEqual, Jt: 1, K: unix.AF_INET6}, refuse(unix.EAFNOSUPPORT), allow)
	only(unix.SYS_CLONE, load(seccompArg0), unix.SockFilter{
		Code: bpfAnySet, Jf: 1,
		K: unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
	}, refuse(unix.EPERM), allow)
	only(unix.SYS_CLONE3, refuse(unix.ENOSYS)) // a filter cannot see its flags
	only(unix.SYS_UNSHARE, refuse(unix.EPERM))
	only(unix.SYS_SETNS, refuse(unix.EPERM))
	only(unix.SYS_MMAP, load(seccompArg2), // only write and execute together
		unix.SockFilter{Code: bpfAnySet, Jf: 2, K: unix.PROT_WRITE}, unix.SockFilter{Code: bpfAnySet, Jf: 1, K: unix.PROT_EXEC}, refuse(unix.EPERM), allow)
	only(unix.SYS_MPROTECT, load(seccompArg2), unix.SockFilter{Code: bpfAnySet, Jf: 1, K: unix.PROT_EXEC}, refuse(unix.EPERM), allow)
	for line := range strings.Lines(string(text)) {
		number, err := strconv.ParseUint(strings.TrimSpace(line), 10, 32)
		if err != nil {
			panic(err)
		}
		only(uint32(number), allow)
	}
	filter = append(filter, refuse(unix.EPERM)) // SystemCallErrorNumber
	runtime.LockOSThread()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil { //nolint:gosec // the kernel reads it
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ())) //nolint:gosec // itself
}

// unitSettings returns the settings of deploy/systemd/seqproxy.service. Values of a repeated
// setting are joined.
func unitSettings(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open(deploy + "systemd/seqproxy.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	settings := make(map[string][]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(key, "#") {
			settings[key] = append(settings[key], value)
		}
	}
	return settings
}

// allowedCalls returns the numbers of the system calls that SystemCallFilter allows, by systemd's
// own lists.
func allowedCalls(t *testing.T, filters []string) string {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed, which has the groups of system calls")
	}
	out, err := exec.Command(tool, "syscall-filter", "--no-pager").Output()
	if err != nil {
		t.Skipf("systemd-analyze syscall-filter: %v", err)
	}
	groups, group := make(map[string][]string), ""
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(string(out), "")) {
		switch name := strings.TrimSpace(line); {
		case name == "" || name[0] == '#':
		case line[0] == '@':
			group = name
		default:
			groups[group] = append(groups[group], name)
		}
	}
	numbers := make(map[string]string)
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "unix", "zsysnum_linux_"+runtime.GOARCH+".go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`).FindAllStringSubmatch(string(source), -1) {
		numbers[strings.ToLower(m[1])] = m[2]
	}
	remaining := make(map[string]bool)
	var set func(name string, allowed bool)
	set = func(name string, allowed bool) {
		if number, ok := numbers[name]; ok {
			remaining[number] = allowed
		}
		for _, member := range groups[name] {
			set(member, allowed)
		}
	}
	set("@default", true)
	for _, f := range filters {
		name, denied := strings.CutPrefix(f, "~")
		if groups[name] == nil {
			t.Fatalf("systemd has no group %s", name)
		}
		set(name, !denied)
	}
	var b strings.Builder
	for number, allowed := range remaining {
		if allowed {
			fmt.Fprintln(&b, number)
		}
	}
	return b.String()
}

// sandbox sets up the machine as the unit does: everything is read-only except for the state and
// log directories, and /tmp and homes are empty.
const sandbox = `set -e
mkdir -p "$ROOT"
mount --bind / "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount --rbind /proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
for hidden in /tmp /var/tmp /home /root; do
	if test -d "$ROOT$hidden"; then mount -t tmpfs tmpfs "$ROOT$hidden"; fi
done
mkdir -p "$ROOT$BASE" 2>/dev/null || true
mount --bind "$BASE" "$ROOT$BASE"
mount -o remount,bind,ro "$ROOT$BASE"
for own in state log; do mount --bind "$BASE/$own" "$ROOT$BASE/$own"; done
mount --bind "$PROGRAM" "$ROOT$BASE/program"
ulimit -n "$FILES" 2>/dev/null || true
umask "$UMASK"
cd /
exec chroot "$ROOT" setpriv --reuid 65532 --regid 65532 --clear-groups --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs "$BASE/program" "$@"
`

// TestTheProxyWorksInTheSandboxOfTheUnit runs the proxy without systemd in the unit's sandbox, as
// far as that is possible.
func TestTheProxyWorksInTheSandboxOfTheUnit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	unit := unitSettings(t)
	for setting, value := range map[string]string{
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes",
		"MemoryDenyWriteExecute": "yes", "RestrictNamespaces": "yes", "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "SystemCallErrorNumber": "EPERM",
		"StateDirectory": "seqproxy", "LogsDirectory": "seqproxy",
	} {
		if got := unit[setting]; len(got) != 1 || got[0] != value {
			t.Errorf("%s of the unit: got %q, the sandbox here is for %q", setting, got, value)
		}
	}
	base, err := os.MkdirTemp("", "unit") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(base + "/root"); err != nil {
			// others do not see these mounts; if they did, nothing must be removed
			t.Error(err)
			return
		}
		_ = os.RemoveAll(base)
	})
	for _, dir := range []string{"", "/root", "/state", "/log", "/run"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil { //nolint:gosec // as those of a system
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "/state", "/log"} {
		if err := os.Chown(base+dir, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(base, 0o755); err != nil { //nolint:gosec // as those of a system
		t.Fatal(err)
	}
	s := mysqltest.Shared(t)
	account(t, "unit", "ALL ON seqproxy.*")
	put := func(name, text string) string {
		if err := os.WriteFile(base+name, []byte(text), 0o644); err != nil { //nolint:gosec // of a throw-away server
			t.Fatal(err)
		}
		return base + name
	}
	put("/program", "")
	calls := put("/calls", allowedCalls(t, unit["SystemCallFilter"]))
	config := func(logFile string) string {
		return `
listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin_users = ["app"]
log.output = "` + base + logFile + `"
[[user]]
name = "app"
password = "app's"
[sequence]
state_dir = "` + base + `/state"
[[sequence.server]]
address = "` + s.Addr() + `"
user = "unit"
password = "secret"
[[shard]]
name = "s"
user = "unit"
password = "secret"
[[shard.node]]
address = "` + s.Addr() + `"
`
	}
	m := newManager(t)
	notify := base + "/run/notify"
	if err := os.WriteFile(notify, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(notify); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.path, notify); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(notify, 0o666); err != nil { //nolint:gosec // as systemd's
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"ROOT=" + base + "/root", "BASE=" + base, "FILES=" + unit["LimitNOFILE"][0], "UMASK=" + unit["UMask"][0]}
	try := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", sandbox, "sh")
	try.Env = append(append(os.Environ(), environment...), "PROGRAM=/bin/true")
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("there is no such sandbox on this machine: %v: %s", err, out)
	}
	run := func(file string) *process {
		t.Helper()
		return beginCommand(t, append(environment, inSandbox+"="+calls, "NOTIFY_SOCKET="+notify, "PROGRAM="+exe),
			"unshare", "--mount", "--propagation", "private", "sh", "-c", sandbox, "sh", "-config", file)
	}

	// A write outside fails: there is a sandbox.
	outside := run(put("/outside.toml", config("/seqproxy.log")))
	outside.end(1)
	if !strings.Contains(outside.stderr(), "read-only file system") {
		t.Errorf("a log outside of its directory: got %q", outside.stderr())
	}

	p := run(put("/seqproxy.toml", config("/log/seqproxy.log")))
	address, ok := strings.CutPrefix(m.next(), "READY=1\nSTATUS=listening on ")
	if !ok {
		t.Fatalf("the proxy is not ready: %s", p.stderr())
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nUid:\t65532\t65532\t", "\nCapBnd:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the process has no %q:\n%s", want, status)
		}
	}
	if got := query(t, address, "app", "app's", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos'); SELECT 1 + 1", plain(t)...); got != "1\n2" {
		t.Errorf("got %q, want 1 and 2", got)
	}
	web := regexp.MustCompile(`"http": "([^"]+)"`).FindStringSubmatch(readText(t, base+"/log/seqproxy.log"))
	if web == nil {
		t.Fatal("the log does not say where metrics are")
	}
	if _, metrics := get(t, web[1], "/metrics"); !strings.Contains(metrics, "\nprocess_open_fds ") {
		t.Error("/metrics has nothing about the process")
	}

	// ExecReload, as systemd runs it.
	reload := strings.Fields(strings.ReplaceAll(unit["ExecReload"][0], "$MAINPID", strconv.Itoa(p.cmd.Process.Pid)))
	if out, err := exec.Command(reload[0], reload[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", reload, err, out)
	}
	if got := m.next(); !strings.HasPrefix(got, "RELOADING=1\n") {
		t.Errorf("systemd's message at a reload: got %q", got)
	}
	if got := m.next(); !strings.HasPrefix(got, "READY=1\n") {
		t.Errorf("systemd's message after the reload: got %q", got)
	}
	if err := os.Rename(base+"/log/seqproxy.log", base+"/log/seqproxy.log.1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	awaitInFile(t, base+"/log/seqproxy.log", "log file opened again")
	p.signal(syscall.SIGTERM)
	if got := m.next(); !strings.HasPrefix(got, "STOPPING=1\n") {
		t.Errorf("systemd's last message: got %q", got)
	}
	p.end(0)
	if _, err := os.Stat(base + "/state/state"); err != nil {
		t.Errorf("the state file: %v", err)
	}
	if info, err := os.Stat(base + "/log/seqproxy.log"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the log file: got %v, %v, want 0640", info.Mode(), err)
	}
	for _, name := range []string{".1", ""} {
		if log := readText(t, base+"/log/seqproxy.log"+name); strings.Contains(log, "not permitted") || strings.Contains(log, "\tERROR\t") {
			t.Errorf("the log:\n%s", log)
		}
	}
	if got := p.stderr(); got != "" {
		t.Errorf("stderr: got %q", got)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
