package conf

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxPasswordFile bounds a password file, in bytes. A longer file is probably the wrong one.
const maxPasswordFile = 4096

// ReadPasswordFile returns the content of a file without the line end that editors add. warning is
// set if everybody may read the file.
func ReadPasswordFile(path string) (password Secret, warning string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, "", err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return Secret{}, "", err
	}
	if info.IsDir() {
		return Secret{}, "", fmt.Errorf("%s is a directory", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPasswordFile+1))
	if err != nil {
		return Secret{}, "", err
	}
	if len(text) > maxPasswordFile {
		return Secret{}, "", fmt.Errorf("%s is longer than %d bytes, so it is no password", path, maxPasswordFile)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case line == "":
		return Secret{}, "", fmt.Errorf("%s is empty", path)
	case strings.ContainsAny(line, "\n\x00"):
		return Secret{}, "", fmt.Errorf("%s holds more than one line", path)
	}
	if worldReadable(info) {
		warning = closeIt(path)
	}
	return NewSecret(line), warning, nil
}

// closeIt is the warning about a secret file that everybody may read.
func closeIt(path string) string { return path + " is readable by everybody; chmod 600 it" }

func worldReadable(info fs.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }

// resolve reads the password into cred.Password and returns what is wrong. key is the name of
// cred's table, for messages.
func (c *Config) resolve(key string, cred *Credential) []string {
	return c.resolveKeys(key, "password", cred)
}

// resolveOld is resolve for old_password, old_password_file and old_password_env.
func (c *Config) resolveOld(key string, user *User) []string {
	old := Credential{user.OldPassword, user.OldPasswordFile, user.OldPasswordEnv}
	problems := c.resolveKeys(key, "old_password", &old)
	user.OldPassword, user.OldPasswordFile = old.Password, old.PasswordFile
	if len(problems) == 0 && user.OldPassword.set {
		switch {
		case user.OldPassword.IsEmpty():
			problems = append(problems, fmt.Sprintf("%s.old_password: must not be empty: it would let in anybody without a password", key))
		case user.Password.IsEmpty():
			problems = append(problems, fmt.Sprintf("%s.old_password: needs a password beside it, the new one", key))
		}
	}
	return problems
}

// resolveKeys resolves the three keys whose names begin with name.
func (c *Config) resolveKeys(key, name string, cred *Credential) []string {
	var given []string
	if cred.Password.set {
		given = append(given, name)
	}
	if cred.PasswordFile != "" {
		given = append(given, name+"_file")
	}
	if cred.PasswordEnv != "" {
		given = append(given, name+"_env")
	}
	if len(given) > 1 {
		return []string{fmt.Sprintf("%s: at most one of %s, %s_file and %s_env is allowed, has %s", key, name, name, name, strings.Join(given, " and "))}
	}
	switch {
	case cred.PasswordFile != "":
		cred.PasswordFile = c.path(cred.PasswordFile)
		password, warning, err := ReadPasswordFile(cred.PasswordFile)
		if err != nil {
			return []string{fmt.Sprintf("%s.%s_file: %v", key, name, err)}
		}
		if warning != "" {
			c.warn("%s.%s_file: %s", key, name, warning)
		}
		cred.Password = password
	case cred.PasswordEnv != "":
		value, ok := os.LookupEnv(cred.PasswordEnv)
		if !ok {
			return []string{fmt.Sprintf("%s.%s_env: the environment variable %s is not set", key, name, cred.PasswordEnv)}
		}
		if value == "" {
			return []string{fmt.Sprintf("%s.%s_env: the environment variable %s is empty; leave the key out for an empty password", key, name, cred.PasswordEnv)}
		}
		cred.Password = NewSecret(value)
	}
	return nil
}

// holdsPassword reports whether the file itself contains a non-empty password.
func (c *Config) holdsPassword() bool {
	inFile := func(cred Credential) bool {
		return !cred.Password.IsEmpty() && cred.PasswordFile == "" && cred.PasswordEnv == ""
	}
	for _, user := range c.Users {
		if inFile(user.Credential) || inFile(Credential{user.OldPassword, user.OldPasswordFile, user.OldPasswordEnv}) {
			return true
		}
	}
	for _, server := range c.Sequence.Servers {
		if inFile(server.Credential) {
			return true
		}
	}
	for _, shard := range c.Shards {
		if inFile(shard.Credential) {
			return true
		}
	}
	return false
}
